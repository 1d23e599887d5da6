"""Options and help texts of the commands, one command per file.

The implementation is in a file of the same name one level up and is imported only when the command runs, so that help
and completion stay fast. Only click, the standard library and light modules of Bellwether may be imported here.
"""
