package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"

	"github.com/kubeop/kubeop/internal/config"
	"github.com/kubeop/kubeop/internal/manager/kubeconfigs"
	"github.com/kubeop/kubeop/internal/manager/live"
	"github.com/kubeop/kubeop/internal/testenv"
)

// TestTheSettingsDecideWhichTasksRunAndWhatEndsThem: what the settings have, until when, and what ends the manager.
func TestTheSettingsDecideWhichTasksRunAndWhatEndsThem(t *testing.T) {
	ends := map[end]string{atStop: "until it stops", afterDrain: "until it is drained", afterAPI: "until the API ended"}
	needs := map[need]string{vital: ", and the manager with it", optional: ""}
	all := []string{
		"API until it is drained, and the manager with it",
		"probes and metrics until the API ended, and the manager with it",
		"caches of the cluster until the API ended, and the manager with it",
		"certificate of the API until the API ended, and the manager with it",
		"sweep of what was fetched until the API ended",
		"sweep of the store until the API ended, led as sweep",
		"who pays for usage until the API ended, led as payers",
		"budgets of tenants until the API ended, led as budgets",
		"changes for webhooks until it stops, led as webhooks",
		"messages to webhooks until it stops",
		"sweep of kubeconfigs until the API ended, led as kubeconfigs",
		"usage of apps until the API ended, led as usage",
		"keys that sign JWTs until the API ended",
		"keys of issuers until the API ended",
	}
	least := append(append(append([]string{}, all[:3]...), all[4:8]...), all[12:]...)
	for name, c := range map[string]struct {
		manager *manager
		want    []string
	}{
		"all":   {&manager{services: &services{cluster: &live.Cluster{}, hooks: &hooks{}, kubeconfigs: &kubeconfigs.Operations{}}, certificates: &certwatcher.CertWatcher{}, config: &config.Manager{Storage: config.Storage{UsageCluster: "local"}}}, all},
		"least": {&manager{services: &services{cluster: &live.Cluster{}}, config: &config.Manager{}}, least},
	} {
		var got []string
		for _, p := range c.manager.parts() {
			if p.run != nil {
				text := fmt.Sprintf("%s %s%s", p.name, ends[p.end], needs[p.need])
				if p.lead != "" {
					text += ", led as " + p.lead
				}
				got = append(got, text)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s, -want +got:\n%s", name, diff)
		}
	}
}

// asManager lets this test binary be the manager, which runs as a process of its own.
const asManager = "KUBEOP_TEST_AS_MANAGER"

func TestMain(m *testing.M) {
	if os.Getenv(asManager) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// process is the program, which a test runs.
type process struct {
	*os.Process
	// log is the file with what it logs.
	log string
	// ended is closed when it ended, with err.
	ended chan struct{}
	err   error
}

// startProcess runs the program on free ports, with settings of its environment, until the test ends.
func startProcess(t *testing.T, cluster *rest.Config, settings ...string) *process {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := testenv.Kubeconfig(kubeconfig, cluster); err != nil {
		t.Fatal(err)
	}
	p := &process{log: filepath.Join(t.TempDir(), "manager.log"), ended: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command("/proc/self/exe")
	cmd.Stderr = log
	cmd.Env = append(os.Environ(), asManager+"=1", "KUBECONFIG="+kubeconfig, "DATA_DIR="+t.TempDir(), "API_ADDR=127.0.0.1:0", "HEALTH_ADDR=127.0.0.1:0", "DRAIN_DELAY=0s")
	cmd.Env = append(cmd.Env, settings...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.Process = cmd.Process
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.Kill() // It fails if the process ended.
		<-p.ended
	})
	return p
}

// logged waits until the log has a line of the form, and returns its group.
func (p *process) logged(t *testing.T, form string) string {
	t.Helper()
	began := time.Now()
	for line := regexp.MustCompile(form); ; time.Sleep(20 * time.Millisecond) {
		var over bool
		select {
		case <-p.ended:
			over = true
		default:
		}
		text, err := os.ReadFile(p.log)
		if err != nil {
			t.Fatal(err)
		}
		if found := line.FindSubmatch(text); found != nil {
			return string(found[1])
		}
		switch {
		case over:
			t.Fatalf("the manager ended with %v and logged no %s:\n%s", p.err, form, text)
		case time.Since(began) > 5*time.Minute:
			t.Fatalf("the manager logged no %s:\n%s", form, text)
		}
	}
}

// address waits until the process serves, and returns where.
func (p *process) address(t *testing.T, server string) string {
	t.Helper()
	return p.logged(t, `"server":"`+server+`","address":"([^"]+)"`)
}

// stop sends a signal, upon which the process has to end without an error.
func (p *process) stop(t *testing.T, signal os.Signal) {
	t.Helper()
	if err := p.Signal(signal); err != nil {
		t.Error(err)
	}
	select {
	case <-p.ended:
	case <-time.After(2 * time.Minute):
		_ = p.Kill()
		<-p.ended
		t.Error("it did not end within two minutes after the signal")
	}
	if p.err != nil {
		text, _ := os.ReadFile(p.log)
		t.Errorf("the manager ended with %v:\n%s", p.err, text)
	}
}

// TestTheProgramServesUntilItGetsASignal runs it as its Pod does, beside an API server that does not answer.
func TestTheProgramServesUntilItGetsASignal(t *testing.T) {
	p := startProcess(t, &rest.Config{Host: "http://127.0.0.1:1"})
	served := map[string]string{"api": "/version", "health": "/healthz"}
	for server, path := range served {
		answer, err := http.Get("http://" + p.address(t, server) + path)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Errorf("%s is answered by %s", path, answer.Status)
		}
	}
	p.stop(t, syscall.SIGTERM)
}
