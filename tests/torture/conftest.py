"""Programs, not tests: ``tests/store`` runs them briefly, ``make torture`` at length."""

collect_ignore_glob = ["kill_service.py", "kill_store.py", "lose_nodes.py", "lose_power.py"]
