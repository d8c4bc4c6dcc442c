package node

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kubeop/kubeop/e2e/cluster/internal/layout"
)

// Init is the first process of the node's namespaces. It sets them up, starts the node's programs, restarts those that end, and reaps orphaned
// processes. When it is killed, the kernel kills all other processes of the node.
func Init(dir layout.Dir, stdin io.Reader) error {
	n, err := load(dir)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(stdin)
	if err := expect(lines, Connected); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte(Name)); err != nil {
		return fmt.Errorf("naming the node: %w", err)
	}
	if err := n.mount(); err != nil {
		return err
	}
	if err := n.connectInside(); err != nil {
		return err
	}
	units := &units{running: map[int]*unit{}}
	if err := n.startRuntime(units); err != nil {
		return err
	}
	if err := expect(lines, APIReady); err != nil {
		return err
	}
	for _, u := range n.kubernetes() {
		if err := units.start(u); err != nil {
			return err
		}
	}
	// The supervisor sends nothing more. When its end of the pipe closes, it has ended.
	_, _ = io.Copy(io.Discard, stdin)
	return nil
}

func expect(lines *bufio.Scanner, line string) error {
	if !lines.Scan() || lines.Text() != line {
		return fmt.Errorf("waiting for %q from the supervisor: it sent %q", line, lines.Text())
	}
	return nil
}

// startRuntime starts containerd, waits until it answers, and imports the sandbox image.
func (n Node) startRuntime(units *units) error {
	containerd := &unit{name: "containerd", keep: true,
		args: []string{n.Tools.Containerd, "--config", insideDir + "/node/containerd.toml"}}
	if err := units.start(containerd); err != nil {
		return err
	}
	go units.reap()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(socket); err == nil {
			break
		}
		if time.Now().After(deadline) {
			return errors.New("containerd made no socket within 30 s: see logs/containerd.log")
		}
	}
	imported := &unit{name: "import", done: make(chan unix.WaitStatus, 1), args: []string{n.Tools.Ctr,
		"--address", socket, "--namespace", "k8s.io", "images", "import", insideDir + "/node/pause.tar"}}
	if err := units.start(imported); err != nil {
		return err
	}
	if status := <-imported.done; status.ExitStatus() != 0 {
		return fmt.Errorf("importing the sandbox image ended with status %d: see logs/import.log", status.ExitStatus())
	}
	return nil
}

// kubernetes returns the programs that need the API server.
func (n Node) kubernetes() []*unit {
	return []*unit{
		{name: "kubelet", keep: true, args: []string{insideBinary, "kubelet",
			"--config=" + insideDir + "/node/kubelet.yaml", "--kubeconfig=" + insideDir + "/config/kubelet.kubeconfig",
			"--hostname-override=" + Name, "--node-ip=" + n.Plan.Node.String(), "--root-dir=/var/lib/kubelet"}},
		{name: "kube-proxy", keep: true, args: []string{insideBinary, "kube-proxy",
			"--config=" + insideDir + "/node/kube-proxy.yaml"}},
	}
}

// unit is a program on the node.
type unit struct {
	name string
	args []string
	// keep restarts the program when it ends. done, if set, receives how it ended.
	keep bool
	done chan unix.WaitStatus
}

// units are the running programs by PID. The lock is held while one is started, so that reap does not see the end of an unknown process.
type units struct {
	mu      sync.Mutex
	running map[int]*unit
}

// start starts a program without os/exec, because its Wait would compete with reap for the ends of processes.
func (s *units) start(u *unit) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	log, err := os.OpenFile(filepath.Join(insideDir, "logs", u.name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log of %s: %w", u.name, err)
	}
	defer log.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return fmt.Errorf("opening %s: %w", os.DevNull, err)
	}
	defer null.Close()
	process, err := os.StartProcess(u.args[0], u.args, &os.ProcAttr{Dir: "/", Files: []*os.File{null, log, log}})
	if err != nil {
		return fmt.Errorf("starting %s: %w", u.name, err)
	}
	s.running[process.Pid] = u
	return process.Release()
}

// reap waits for the end of all processes, including orphaned ones.
func (s *units) reap() {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		if err == unix.ECHILD {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		if err != nil {
			continue
		}
		s.mu.Lock()
		u := s.running[pid]
		delete(s.running, pid)
		s.mu.Unlock()
		if u != nil {
			s.ended(u, status)
		}
	}
}

func (s *units) ended(u *unit, status unix.WaitStatus) {
	if u.done != nil {
		u.done <- status
	}
	if !u.keep {
		return
	}
	fmt.Fprintf(os.Stderr, "%s ended (status %d, signal %d); starting it again\n", u.name, status.ExitStatus(), status.Signal())
	time.AfterFunc(time.Second, func() {
		if err := s.start(u); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	})
}
