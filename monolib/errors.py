"""Errors that are the user's to mend: their text is shown as it is, without a traceback, by the command line."""


class UserError(ValueError):
    """A request that cannot be carried out; one line per problem, each naming what, its value, and what is allowed."""
