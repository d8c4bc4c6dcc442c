package notice

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// startAlertmanager starts the Alertmanager that `make alertmanager` built, and returns its address.
func startAlertmanager(t *testing.T) string {
	t.Helper()
	built := os.Getenv("KUBEOP_ALERTMANAGER")
	if built == "" {
		t.Skip("KUBEOP_ALERTMANAGER names no Alertmanager; make alertmanager builds one and runs this test")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	dir := t.TempDir()
	config := filepath.Join(dir, "alertmanager.yml")
	if err := os.WriteFile(config, []byte("route: {receiver: nobody}\nreceivers: [{name: nobody}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := exec.Command(built, "--config.file="+config, "--storage.path="+dir, "--web.listen-address="+address, "--cluster.listen-address=")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		res, err := http.Get("http://" + address + "/-/ready")
		if err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return "http://" + address
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("Alertmanager does not answer: %v", err)
		}
	}
}

// TestARealAlertmanagerBeginsAndEndsAlerts begins, repeats and ends alerts at an Alertmanager that is no fake.
func TestARealAlertmanagerBeginsAndEndsAlerts(t *testing.T) {
	address := startAlertmanager(t)
	began := time.Now().Add(-time.Minute).Truncate(time.Second).UTC()
	unhealthy := Notice{App: "shop/web", Severity: Error, Reason: "Unhealthy", Message: "Deployment web: <!channel> & more", Revision: "main@sha1:1a2b3c4d", Since: began}
	invalid := Notice{Severity: Error, Reason: "InvalidTree", Message: "app.yaml:3:1: why", Since: began}
	send := func(to string, notices ...Notice) {
		t.Helper()
		if err := Send(t.Context(), loopback, Receiver{Type: Alertmanager, Address: to}, Batch{"acme", notices, time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	active := func() (lines []string) {
		t.Helper()
		res, err := http.Get(address + "/api/v2/alerts?active=true")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var alerts []alert
		if err := json.NewDecoder(res.Body).Decode(&alerts); err != nil {
			t.Fatal(err)
		}
		for _, a := range alerts {
			lines = append(lines, fmt.Sprint(a.Labels["alertname"], " ", a.Labels["app"], ": ", a.Annotations["description"], " since ", a.StartsAt.Equal(began)))
			if left := time.Until(a.EndsAt); a.Labels["tenant"] != "acme" || a.Labels["severity"] != "error" || left < AlertLife-time.Minute || left > AlertLife {
				t.Errorf("the alert is %+v", a)
			}
		}
		return lines
	}
	send(address, unhealthy, invalid)
	const web, commit = "KubeopAppNotReady web: Deployment web: <!channel> & more since true", "KubeopCommitNotApplied : app.yaml:3:1: why since true"
	if diff := cmp.Diff(map[string]bool{web: true, commit: true}, set(active())); diff != "" {
		t.Errorf("at first (-want +got):\n%s", diff)
	}
	invalid.Message = "app.yaml:4:1: another"
	send(address+"/api/v2/alerts", unhealthy, invalid)
	if diff := cmp.Diff(map[string]bool{web: true, "KubeopCommitNotApplied : app.yaml:4:1: another since true": true}, set(active())); diff != "" {
		t.Errorf("again (-want +got):\n%s", diff)
	}
	unhealthy.Resolved, invalid.Resolved = true, true
	send(address, unhealthy, invalid)
	if left := active(); len(left) != 0 {
		t.Errorf("in the end there are %v", left)
	}
}

func set(lines []string) map[string]bool {
	all := map[string]bool{}
	for _, line := range lines {
		all[line] = true
	}
	return all
}
