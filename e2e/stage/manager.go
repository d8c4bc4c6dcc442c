package stage

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// Manager is the management API as a process on the host. It has the permissions of the chart's service account.
type Manager struct {
	// URL is where it serves plain HTTP, on loopback. Log is the path of its log.
	URL, Log string
	// Code is what its first administrator claims a token with, once, within an hour.
	Code string

	process process
}

// StartManager runs the manager on the host, beside an operator that was started.
func (s *Stage) StartManager(ctx context.Context) (*Manager, error) {
	if err := s.managerAccount(ctx); err != nil {
		return nil, err
	}
	kubeconfig, err := s.accountKubeconfig(ctx, release+"-manager")
	if err != nil {
		return nil, err
	}
	addresses, err := freeAddresses(2)
	if err != nil {
		return nil, err
	}
	data := s.Path("manager")
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of the manager: %w", err)
	}
	m := &Manager{URL: "http://" + addresses[0], Log: s.Path("manager.log")}
	m.process = process{name: "manager", program: s.bin.manager, log: m.Log, health: addresses[1], env: []string{
		"KUBECONFIG=" + kubeconfig, "API_ADDR=" + addresses[0], "HEALTH_ADDR=" + addresses[1], "DATA_DIR=" + data, "DRAIN_DELAY=0s", "LOG_FORMAT=console",
		"OPERATOR_NAMESPACE=" + Namespace, "ALLOWED_ADDRESSES=" + allowed, "USAGE_CLUSTER=local",
	}}
	s.manager = m
	if err := m.process.start(ctx); err != nil {
		return nil, err
	}
	log, err := os.ReadFile(m.Log)
	if err != nil {
		return nil, fmt.Errorf("reading the log of the manager: %w", err)
	}
	if m.Code = regexp.MustCompile(`setup_[A-Za-z0-9_-]{43}`).FindString(string(log)); m.Code == "" {
		return nil, fmt.Errorf("the log of the manager, %s, has no code for the first administrator", m.Log)
	}
	return m, nil
}

// managerAccount makes the account of the manager and its rights as the chart does, without its pod.
func (s *Stage) managerAccount(ctx context.Context) error {
	rendered, err := s.Helm(ctx, "template", release, filepath.Join(s.root, "charts", "kubeop"), "--namespace", Namespace, "--show-only", "templates/manager.yaml",
		"--set", "manager.enabled=true", "--set", "manager.plainHTTP=true", "--set", "manager.usage.enabled=true", "--set", "manager.git.secrets={"+platformSecret+",acme-git}")
	if err != nil {
		return err
	}
	wanted := regexp.MustCompile(`(?m)^kind: (ServiceAccount|(Cluster)?Role(Binding)?)$`)
	var account []string
	for document := range strings.SplitSeq(rendered, "\n---\n") {
		if wanted.MatchString(document) {
			account = append(account, document)
		}
	}
	path := s.Path("manager-account.yaml")
	if err := os.WriteFile(path, []byte(strings.Join(account, "\n---\n")), 0o600); err != nil {
		return fmt.Errorf("writing the account of the manager: %w", err)
	}
	_, err = s.Kubectl(ctx, "apply", "-f", path)
	return err
}

func (m *Manager) stop() error { return m.process.end(syscall.SIGTERM, time.Minute) }
