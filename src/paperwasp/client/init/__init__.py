"""The command `init`: an application package made of a sample of the data that it is for.

sample      the first rows of a file, as they are
guessing    which type the values of a column have, and what the column is for
package     the files of the package, with comments that say why each line is there
"""
