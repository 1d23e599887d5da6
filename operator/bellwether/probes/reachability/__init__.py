"""Reachability probe: does each broker serve clients on its external listener."""
