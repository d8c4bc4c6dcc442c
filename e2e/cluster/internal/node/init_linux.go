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

// Init is the first process of the node's namespaces: it sets them up, starts the node's programs, starts again what
// ends, and reaps what is orphaned. When it is killed the kernel ends everything else on the node.
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
	// The supervisor never says anything more; that its end of the pipe closes means that it is gone.
	_, _ = io.Copy(io.Discard, stdin)
	return nil
}

func expect(lines *bufio.Scanner, line string) error {
	if !lines.Scan() || lines.Text() != line {
		return fmt.Errorf("waiting for the supervisor to say %q: it said %q", line, lines.Text())
	}
	return nil
}

// startRuntime returns when containerd answers and has the sandbox image.
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

// kubernetes are the programs that need the API server.
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
	// keep starts the program again when it ends; done, when set, receives how it ended.
	keep bool
	done chan unix.WaitStatus
}

// units are the running programs by process number. The lock is held while starting one, so that reap never sees the
// end of a process it does not know yet.
type units struct {
	mu      sync.Mutex
	running map[int]*unit
}

// start does without os/exec, whose waiting would compete with reap for the ends of processes.
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

// reap waits for the ends of all processes, also of those that lost their parent.
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
