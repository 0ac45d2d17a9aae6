"""What an answer says: the decision, its probabilities, its reasons."""
