"""The paper's toy world and figures."""
