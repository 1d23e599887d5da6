"""What each verb is called, takes and says for help, one verb a file.

A verb's work is in a file of the same name one level up, which is imported when the verb runs and not before: help and
completion wait for no client. Only click, the standard library and light modules of ours are imported here.
"""
