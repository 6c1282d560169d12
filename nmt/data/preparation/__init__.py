"""From pairs of sentences to ids in files: screened, encoded, accounted for. Resumable at any moment."""
