package git

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/kubeop/kubeop/delivery/fetch/disk"
)

// commitsFile lists commits, one hash per line.
const commitsFile = "commits"

func readCommits(dir string) []plumbing.Hash {
	text, err := os.ReadFile(filepath.Join(dir, commitsFile))
	if err != nil {
		return nil
	}
	var commits []plumbing.Hash
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); fullHash.MatchString(line) {
			commits = append(commits, plumbing.NewHash(line))
		}
	}
	return commits
}

func writeCommits(dir string, commits []plumbing.Hash) error {
	var text strings.Builder
	for _, commit := range commits {
		text.WriteString(commit.String() + "\n")
	}
	return replace(filepath.Join(dir, commitsFile), []byte(text.String()))
}

// replace writes a file so that every reader, also after a crash, sees the old content or the new one.
func replace(path string, content []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), disk.Temporary)
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	_, err = file.Write(content)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// sweep removes the unfinished files of a folder.
func sweep(dir string) {
	unfinished, _ := filepath.Glob(filepath.Join(dir, disk.Temporary))
	for _, path := range unfinished {
		_ = os.Remove(path)
	}
}
