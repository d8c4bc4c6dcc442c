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
	if err := s.plane().Signal("kube-apiserver", syscall.SIGSTOP); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case <-time.After(long):
	}
	return errors.Join(s.plane().Signal("kube-apiserver", syscall.SIGCONT), ctx.Err())
}

// SnapshotEtcd copies the cluster's database as it is; to is a folder that is not there.
func (s *Stage) SnapshotEtcd(to string) error { return s.plane().Snapshot(to) }

// RestoreEtcd has the whole cluster go back to a snapshot, as etcd's own instructions say: all components start anew, those of the
// node too. It returns when the API server answers.
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

// OperatorPID is the process of the installed operator, by its number on the host. Those in which it evaluates are its children.
func (s *Stage) OperatorPID(ctx context.Context) (int, error) {
	uid, err := s.Kubectl(ctx, "get", "pods", "--namespace", Namespace, "--selector", "app.kubernetes.io/name=kubeop", "--output", "jsonpath={.items[*].metadata.uid}")
	if err != nil {
		return 0, err
	}
	return s.onNode("operator", "/pods/"+uid+"/")
}

// onNode finds a program of the real node among the host's processes. One of its mounts comes from the place given. A process in
// which the operator evaluates is not the operator.
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
		line, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline")) // Not there: it has ended.
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
