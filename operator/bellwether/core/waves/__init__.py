"""Apply approved orders in waves: guarded, undoable, counted. Which orders are good is not decided here."""
