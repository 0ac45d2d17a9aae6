"""What is saved: the one writer and the one reader of the files and folders that holue keeps on disk."""

from holue.artifact.artifact import read_artifact, write_artifact
from holue.artifact.whole import whole_file, whole_folder, write_text

__all__ = ["read_artifact", "whole_file", "whole_folder", "write_artifact", "write_text"]
