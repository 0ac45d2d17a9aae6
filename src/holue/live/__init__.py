"""An open gallery: a store, what was calibrated, and the version that answers."""
