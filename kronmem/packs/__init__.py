"""What every framework pack shares."""
