package target

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestTheFlagsChooseTheClusterAndTheTenant: those of kubectl that few people need are hidden, and work.
func TestTheFlagsChooseTheClusterAndTheTenant(t *testing.T) {
	c := New()
	flags := pflag.NewFlagSet("kubeop", pflag.ContinueOnError)
	c.AddFlags(flags)
	if err := flags.Parse([]string{"-t", "acme", "-p", "shop", "-n", "kubeop-acme-shop", "--token", "secret", "--context", "prod"}); err != nil {
		t.Fatal(err)
	}
	if c.Tenant != "acme" || c.Project != "shop" || *c.Flags.Namespace != "kubeop-acme-shop" || *c.Flags.BearerToken != "secret" || c.context() != "prod" {
		t.Errorf("tenant %q, project %q, namespace %q, token %q, context %q", c.Tenant, c.Project, *c.Flags.Namespace, *c.Flags.BearerToken, c.context())
	}
	for name, hidden := range map[string]bool{"tenant": false, "project": false, "kubeconfig": false, "as": false, "token": true, "as-group": true, "cluster": true} {
		if f := flags.Lookup(name); f == nil || f.Hidden != hidden || (f.Usage == "") != hidden {
			t.Errorf("--%s: %+v, want hidden %t", name, f, hidden)
		}
	}
}

func TestAKubeconfigThatCannotBeReadIsAnError(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := New()
	c.Flags.KubeConfig = &broken
	_, config := c.Config()
	_, reader := c.Client()
	_, tables := c.Tables()
	_, read := c.Read(t.Context(), Object{Kind: Tenant})
	for name, err := range map[string]error{"configuration": config, "client": reader, "tables": tables, "read": read} {
		if err == nil || !strings.Contains(err.Error(), "reading the kubeconfig") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := c.server(); got != "the cluster" {
		t.Errorf("the server is %q", got)
	}
	other := errors.New("other")
	if got := c.Explain(other); !errors.Is(got, other) {
		t.Errorf("explained as %v", got)
	}
	if got := c.Explain(nil); got != nil {
		t.Errorf("nothing is explained as %v", got)
	}
}

// TestACommandIsNotSlowedDown: the API server's own flow control is the limit.
func TestACommandIsNotSlowedDown(t *testing.T) {
	config, err := in(t, "").Config()
	if err != nil || config.QPS != -1 || config.Burst != -1 {
		t.Errorf("%v: %+v", err, config)
	}
}

// TestAManagerTakesThePlaceOfTheCluster: by the flag, or else by the environment. Then neither the kubeconfig nor its namespace counts, and what needs the cluster says so.
func TestAManagerTakesThePlaceOfTheCluster(t *testing.T) {
	c := in(t, "kubeop-acme-shop")
	if m, err := c.Manager(); err != nil || m.Server != "" || c.Within().Tenant != "acme" {
		t.Errorf("without a manager: %v %+v, within %+v", err, m, c.Within())
	}
	t.Setenv("KUBEOP_SERVER", "https://env.example.com")
	t.Setenv("KUBEOP_SERVER_CA", "env.crt")
	t.Setenv("KUBEOP_TOKEN_FILE", "token")
	if m, err := c.Manager(); err != nil || m.Server != "https://env.example.com" || m.ServerCA != "env.crt" || m.TokenFile != "token" {
		t.Errorf("of the environment: %v %+v", err, m)
	}
	c.Server, c.ServerCA = "https://flag.example.com", "flag.crt"
	if m, err := c.Manager(); err != nil || m.Server != "https://flag.example.com" || m.ServerCA != "flag.crt" {
		t.Errorf("of the flags: %v %+v", err, m)
	}
	if within := c.Within(); within.Tenant != "" {
		t.Errorf("the namespace of the kubeconfig counts: %+v", within)
	}
	*c.Flags.Namespace = "kubeop-beta-blog"
	if within := c.Within(); within.Tenant != "beta" || within.Project != "blog" {
		t.Errorf("-n does not count: %+v", within)
	}
	c.Server = "https://me:hunter2@flag.example.com"
	_, config := c.Config()
	_, cluster := c.Cluster()
	for name, err := range map[string]error{"the configuration": config, "the cluster": cluster} {
		if err == nil || !strings.Contains(err.Error(), "needs the cluster itself") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
