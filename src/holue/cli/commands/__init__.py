"""One file per command, in folders by what they work on."""
