package cli

import (
	"bufio"
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/component-base/version"

	"github.com/kubeop/kubeop/e2e/cluster/internal/boot"
	"github.com/kubeop/kubeop/e2e/cluster/internal/layout"
)

// upFlags are the flags of `up`.
type upFlags struct {
	node string
	// kubernetes is the minor version whose APIs and features the control plane has, such as 1.34; "" is that of the binary.
	kubernetes string
	timeout    time.Duration
	registry   bool
	git        bool
	audit      bool
	parentPID  int
}

func newUp(open opener) *cobra.Command {
	var flags upFlags
	command := &cobra.Command{
		Use: "up", Short: "Start a cluster and wait until it answers", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			dir, err := open()
			if err != nil {
				return err
			}
			if !command.Flags().Changed("registry") {
				flags.registry = flags.node != string(layout.None)
			}
			if !command.Flags().Changed("git") {
				flags.git = flags.node != string(layout.None)
			}
			return up(dir, flags)
		},
	}
	f := command.Flags()
	f.StringVar(&flags.node, "node", cmp.Or(os.Getenv("NODE"), "auto"),
		"what runs pods: real, simulated, none (control plane only), or auto: real where it can be; $NODE sets it as well")
	f.StringVar(&flags.kubernetes, "kubernetes", os.Getenv("KUBERNETES"),
		"have the APIs and features of this minor version, such as 1.34, up to three before the binary's own; $KUBERNETES sets it as well (default: the binary's own)")
	f.DurationVar(&flags.timeout, "timeout", 5*time.Minute, "give up after this time")
	f.BoolVar(&flags.registry, "registry", false, "run the container and chart registry (default true with a node)")
	f.BoolVar(&flags.git, "git", false, "run the Git server (default true with a node)")
	f.BoolVar(&flags.audit, "audit", false, "write the API server's audit log (metadata of every request) to logs/audit.log")
	f.IntVar(&flags.parentPID, "parent-pid", 0, "remove the cluster when the process with this number ends")
	return command
}

func up(dir layout.Dir, flags upFlags) error {
	began := time.Now()
	kind, why, err := nodeKind(flags.node)
	if err != nil {
		return err
	}
	if done, err := replace(dir); done || err != nil {
		return err
	}
	if err := dir.Claim(); err != nil {
		return err
	}
	options := boot.Options{
		Name: newName(), Node: kind, Why: why, Registry: flags.registry, Git: flags.git, Audit: flags.audit, Kubernetes: flags.kubernetes,
		ParentPID: flags.parentPID, Version: version.Get().GitVersion,
	}
	if err := options.Save(dir); err != nil {
		return err
	}
	fmt.Printf("Starting a cluster in %s\n  node: %s, %s\n", dir, kind, why)
	if err := supervise(dir, options, began, flags.timeout); err != nil {
		return err
	}
	state, err := dir.Read()
	if err != nil {
		return err
	}
	fmt.Printf("Ready in %.1f s. Look with:\n  export KUBECONFIG=%s\n", time.Since(began).Seconds(), state.Kubeconfig)
	return nil
}

// replace removes a cluster that no longer runs. done means that a cluster is already running.
func replace(dir layout.Dir) (done bool, err error) {
	if !dir.Owned() {
		return false, nil
	}
	state, err := dir.Read()
	if err != nil {
		return false, err
	}
	if state.Supervisor.Alive() {
		if state.Phase != layout.Ready {
			return false, fmt.Errorf("a cluster in %s is %s: wait for it or take it down", dir, state.Phase)
		}
		fmt.Printf("The cluster in %s is up already.\n", dir)
		return true, nil
	}
	fmt.Printf("Clearing away the cluster in %s, which no longer runs.\n", dir)
	return false, down(dir)
}

// supervise starts the supervisor in its own session, and prints its progress until the cluster is ready or has failed.
func supervise(dir layout.Dir, options boot.Options, began time.Time, timeout time.Duration) error {
	reader, writer, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("making a pipe: %w", err)
	}
	defer reader.Close()
	command, err := startSupervisor(dir, writer)
	if err != nil {
		return err
	}
	state := &layout.State{
		Name: options.Name, Dir: string(dir), Phase: layout.Starting, Version: options.Version, StartedAt: began,
		Supervisor: layout.ProcessOf(command.Process.Pid), Kubeconfig: dir.Kubeconfig(), CAFile: dir.PKI("ca.crt"),
		LogsDir: dir.Path("logs"), Node: layout.Node{Kind: options.Node, Why: options.Why},
	}
	if err := dir.Write(state); err != nil {
		return err
	}
	// The supervisor waits for this line before it writes cluster.json too.
	if _, err := command.in.Write([]byte("go\n")); err != nil {
		return fmt.Errorf("starting the supervisor: %w", err)
	}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(interrupted)
	result := make(chan error, 1)
	go func() { result <- follow(reader) }()
	select {
	case err = <-result:
	case <-interrupted:
		return errors.Join(errors.New("interrupted"), down(dir))
	case <-time.After(timeout):
		// The last lines of the supervisor contain what it was waiting for.
		err = errors.Join(fmt.Errorf("not ready after %s", timeout), boot.Stop(dir), <-result)
	}
	if err != nil {
		return fmt.Errorf("%w\nthe logs are in %s; \"cluster down\" removes them", err, dir.Path("logs"))
	}
	return nil
}

// supervisorProcess is a started supervisor, and the pipe with the line that lets it begin.
type supervisorProcess struct {
	*exec.Cmd
	in *os.File
}

func startSupervisor(dir layout.Dir, progress *os.File) (*supervisorProcess, error) {
	defer progress.Close()
	binary, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster binary: %w", err)
	}
	log, err := os.OpenFile(dir.Log("supervisor"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the supervisor's log: %w", err)
	}
	defer log.Close()
	in, out, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	defer in.Close()
	command := exec.Command(binary, "cluster", "supervise", "--dir", string(dir))
	command.Dir, command.Stdin, command.Stdout, command.Stderr = string(dir), in, log, log
	command.ExtraFiles = []*os.File{progress}
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting the supervisor: %w", err)
	}
	return &supervisorProcess{Cmd: command, in: out}, nil
}

// follow prints the supervisor's progress. If the last line is not the ready line, it is returned as the error.
func follow(progress *os.File) error {
	var last string
	for lines := bufio.NewScanner(progress); lines.Scan(); {
		if last != "" {
			fmt.Println(last)
		}
		last = lines.Text()
	}
	switch last {
	case boot.ReadyLine:
		return nil
	case "":
		return errors.New("the supervisor ended without a word")
	}
	return errors.New(last)
}

// newName returns a name that no other cluster of this machine has.
func newName() string {
	var id [3]byte
	_, _ = rand.Read(id[:])
	return "kubeop-" + hex.EncodeToString(id[:])
}
