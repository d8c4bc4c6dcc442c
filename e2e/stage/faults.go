package stage

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// OnServer runs git in a bare repository of the Git server, past all that the server forbids.
func (s *Stage) OnServer(ctx context.Context, repository string, args ...string) error {
	_, err := run(ctx, nil, "git", append([]string{"--git-dir", s.bare(repository)}, args...)...)
	return err
}

// Vanish takes a repository from the Git server, and Return brings it back.
func (s *Stage) Vanish(repository string) error {
	return os.Rename(s.bare(repository), s.bare(repository)+".gone")
}

// Return undoes Vanish.
func (s *Stage) Return(repository string) error {
	return os.Rename(s.bare(repository)+".gone", s.bare(repository))
}

func (s *Stage) bare(repository string) string {
	return filepath.Join(s.clusterDir(), "git", "repositories", repository+".git")
}

// FreezeAPIServer stops the API server's process and lets it go on after a while, as a host does that is out of memory or
// whose disk hangs: connections stay open and nobody answers.
func (s *Stage) FreezeAPIServer(ctx context.Context, long time.Duration) error {
	pid, err := s.processOf("kube-apiserver")
	if err != nil {
		return err
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return fmt.Errorf("stopping the API server: %w", err)
	}
	select {
	case <-ctx.Done():
	case <-time.After(long):
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		return fmt.Errorf("letting the API server go on: %w", err)
	}
	return ctx.Err()
}

// processOf finds a component of this cluster among the host's processes: its arguments name the cluster's directory.
func (s *Stage) processOf(component string) (int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, fmt.Errorf("finding %s: %w", component, err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		line, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err != nil {
			continue // it has ended
		}
		words := bytes.Split(line, []byte{0})
		named := filepath.Base(string(words[0])) == component || len(words) > 1 && string(words[1]) == component
		if named && bytes.Contains(line, []byte(s.clusterDir()+"/")) {
			return pid, nil
		}
	}
	return 0, fmt.Errorf("finding %s: no process of %s", component, s.clusterDir())
}
