"""The paper's own data sets, as their owners distribute them."""
