"""From pairs of sentences to ids in files: filtered, encoded, described by a data card. Resumable at any moment."""
