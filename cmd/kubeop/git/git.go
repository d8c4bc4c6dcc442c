// Package git runs the program git in a person's clone, with the person's settings and credentials.
package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// ErrMissing means that the program git is not installed.
var ErrMissing = errors.New("the program git is not installed")

// careful are settings that keep a folder's own configuration from running programs when git only looks at it.
var careful = []string{"-c", "core.fsmonitor=false", "-c", "safe.bareRepository=explicit"}

// Run runs a command in a folder and returns what it prints. The error has what it complains about.
func Run(ctx context.Context, folder string, args ...string) (string, error) {
	return pipe(ctx, folder, nil, args...)
}

// pipe is Run with standard input. Git asks no questions on the terminal then.
func pipe(ctx context.Context, folder string, in io.Reader, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", slices.Concat([]string{"-C", folder}, careful, args)...)
	var out, complaint bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = in, &out, &complaint
	if in != nil {
		command.Env = append(command.Environ(), "GIT_TERMINAL_PROMPT=0")
	}
	err := command.Run()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "", ErrMissing
	case err != nil:
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(complaint.String()))
	}
	return out.String(), nil
}

// Within reports whether a folder or one above it is a work tree of Git.
func Within(folder string) bool {
	at, err := filepath.Abs(folder)
	if err != nil {
		return false
	}
	for ; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return true
		}
		if at == filepath.Dir(at) {
			return false
		}
	}
}
