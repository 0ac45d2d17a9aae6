"""Training on images: batches of pictures, augmented, and the networks that read them."""
