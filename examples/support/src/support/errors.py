"""What can be wrong with a ticket."""


class UnknownTicket(Exception):
    """No ticket has this number: trying again will not help."""
