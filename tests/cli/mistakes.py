"""What a mistake looks like on stderr."""

import re


def is_a_mistake(err: str) -> bool:
    """One sentence, and below it at most the page that explains it.

    >>> is_a_mistake("Error: No such folder.\\nSee docs/audit.md\\n"), is_a_mistake("Error: No.\\nAnd more.\\n")
    (True, False)
    """
    return re.fullmatch(r"Error: .+\n(See docs/\S+\n)?", err) is not None
