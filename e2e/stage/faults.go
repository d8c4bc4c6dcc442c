package stage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/kubeop/kubeop/e2e/plane"
)

// OnServer runs git in a bare repository of the Git server, bypassing the server's rules.
func (s *Stage) OnServer(ctx context.Context, repository string, args ...string) error {
	_, err := run(ctx, nil, "git", append([]string{"--git-dir", s.bare(repository)}, args...)...)
	return err
}

// Vanish removes a repository from the Git server, and Return restores it.
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

// FreezeAPIServer stops the API server's process for a while, as if its host were out of memory or its disk hung. Connections stay open
// without an answer.
func (s *Stage) FreezeAPIServer(ctx context.Context, long time.Duration) error {
	if err := s.plane().Signal("kube-apiserver", syscall.SIGSTOP); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case <-time.After(long):
	}
	return errors.Join(s.plane().Signal("kube-apiserver", syscall.SIGCONT), ctx.Err())
}

// SnapshotEtcd copies the cluster's database to a new folder.
func (s *Stage) SnapshotEtcd(to string) error { return s.plane().Snapshot(to) }

// RestoreEtcd restores a snapshot as etcd's documentation says: all components restart, including those of the node. It returns when the
// API server answers.
func (s *Stage) RestoreEtcd(ctx context.Context, snapshot string) error {
	if err := s.plane().Restore(snapshot, "kube-controller-manager", "kube-scheduler"); err != nil {
		return err
	}
	for _, program := range []string{"kubelet", "kube-proxy"} {
		pid, err := s.onNode(program, s.inDir())
		if err != nil {
			return err
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			return fmt.Errorf("ending %s: %w", program, err)
		}
	}
	return Until(ctx, time.Minute, "the restored API server answers", func(ctx context.Context) error {
		_, err := s.Kubectl(ctx, "get", "--raw", "/readyz")
		return err
	})
}

func (s *Stage) plane() plane.Plane { return plane.Plane{Dir: s.clusterDir()} }

// inDir is part of the source of every mount of this cluster's node.
func (s *Stage) inDir() string {
	return filepath.Join(filepath.Base(s.dir), filepath.Base(s.clusterDir())) + "/"
}

// OperatorPID returns the host's PID of the installed operator. Its evaluation processes are its children.
func (s *Stage) OperatorPID(ctx context.Context) (int, error) {
	uid, err := s.Kubectl(ctx, "get", "pods", "--namespace", Namespace, "--selector", "app.kubernetes.io/name=kubeop", "--output", "jsonpath={.items[*].metadata.uid}")
	if err != nil {
		return 0, err
	}
	return s.onNode("operator", "/pods/"+uid+"/")
}

// onNode finds the process of a program on the real node, by the source of one of its mounts. Evaluation processes do not count as the
// operator.
func (s *Stage) onNode(program, mounted string) (int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, fmt.Errorf("finding %s: %w", program, err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		line, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline")) // It fails if the process has ended.
		mounts, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "mountinfo"))
		words := bytes.Split(line, []byte{0})
		named := filepath.Base(string(words[0])) == program || len(words) > 1 && string(words[1]) == program
		named = named && (len(words) < 2 || string(words[1]) != "evaluate")
		if named && bytes.Contains(mounts, []byte(mounted)) {
			return pid, nil
		}
	}
	return 0, fmt.Errorf("finding %s: no process of it has a mount of %s", program, mounted)
}
