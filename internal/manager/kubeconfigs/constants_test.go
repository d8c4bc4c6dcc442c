package kubeconfigs

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestTheChartAndTheOperatorHaveTheSameConstants: the policies and the role of the manager allow it what it does, and no more, and the operator makes the accounts that it names.
func TestTheChartAndTheOperatorHaveTheSameConstants(t *testing.T) {
	var accounts, quoted []string
	for _, r := range roles {
		accounts = append(accounts, accountPrefix+r.name)
		quoted = append(quoted, "'"+accountPrefix+r.name+"'")
	}
	const root, policies = "../../../", "../../../charts/kubeop/policies/tenants/"
	for file, want := range map[string][]string{
		root + "charts/kubeop/templates/manager.yaml": {"resourceNames: [" + strings.Join(accounts, ", ") + "]"},
		root + "delivery/access/people.go":            {"const AccountPrefix = \"" + accountPrefix + "\""},
		policies + "platform-token.yaml": {
			"request.name in [" + strings.Join(quoted, ", ") + "]", ".startsWith('" + secretPrefix + "')", fmt.Sprintf(".orValue(0) <= %d\n", int(maxLife.Seconds())), "':" + accountPrefix + "')",
		},
		policies + "kubeconfig-secret.yaml": {"'^" + secretPrefix + "[0-9a-f]{8}", "== '" + secretType + "'"},
		policies + "frozen.yaml":            {":" + accountPrefix + "'"},
		policies + "job-by-hand.yaml":       {":" + accountPrefix + "'"},
		policies + "foreign-subject.yaml":   {accountPrefix},
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
		}
		for _, part := range want {
			if !strings.Contains(string(text), part) {
				t.Errorf("%s has no %q", file, part)
			}
		}
	}
}
