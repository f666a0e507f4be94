"""Programs for who works on the repository; none of them is part of the package."""
