package isolation

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	within = `{"podSelector":{}}`
	dnsTo  = `{"ports":[{"protocol":"UDP","port":53},{"protocol":"TCP","port":53}],"to":[{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"kube-system"}}}]}`
	both   = `"policyTypes":["Ingress","Egress"]`
)

func TestThePolicyAdmitsOnlyWhatItsRulesName(t *testing.T) {
	for name, tc := range map[string]struct {
		rules Rules
		want  string
	}{
		// A rule without peers would let everything through.
		"within the project, and DNS": {Rules{}, `{"podSelector":{},"ingress":[{"from":[` + within + `]}],"egress":[{"to":[` + within + `]},` + dnsTo + `],` + both + `}`},
		"from the ingress controller": {
			Rules{Admitted: []map[string]string{{nameLabel: "ingress"}}}, `{"podSelector":{},"ingress":[{"from":[` + within +
				`]},{"from":[{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"ingress"}}}]}],"egress":[{"to":[` + within + `]},` + dnsTo + `],` + both + `}`,
		},
		"to ranges": {
			Rules{Egress: []Range{{CIDR: "0.0.0.0/0", Except: []string{"10.0.0.0/8", "169.254.0.0/16"}}, {CIDR: "203.0.113.0/24"}}},
			`{"podSelector":{},"ingress":[{"from":[` + within + `]}],"egress":[{"to":[` + within + `]},` + dnsTo +
				`,{"to":[{"ipBlock":{"cidr":"0.0.0.0/0","except":["10.0.0.0/8","169.254.0.0/16"]}},{"ipBlock":{"cidr":"203.0.113.0/24"}}]}],` + both + `}`,
		},
		"with other projects, and by labels": {
			Rules{Admitted: []map[string]string{{"team": "a", "use": "monitoring"}}, From: []string{"kubeop-acme-web"}, To: []string{"kubeop-acme-billing"}},
			`{"podSelector":{},"ingress":[{"from":[` + within + `]},{"from":[{"namespaceSelector":{"matchLabels":{"team":"a","use":"monitoring"}}},` +
				`{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"kubeop-acme-web"}}}]}],"egress":[{"to":[` + within + `]},` + dnsTo +
				`,{"to":[{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"kubeop-acme-billing"}}}]}],` + both + `}`,
		},
		"to ports of ranges": {
			Rules{Egress: []Range{{CIDR: "203.0.113.0/24"}}, Ports: []Ports{{"TCP", 443, 443}, {"UDP", 8000, 8999}}},
			`{"podSelector":{},"ingress":[{"from":[` + within + `]}],"egress":[{"to":[` + within + `]},` + dnsTo +
				`,{"ports":[{"protocol":"TCP","port":443},{"protocol":"UDP","port":8000,"endPort":8999}],"to":[{"ipBlock":{"cidr":"203.0.113.0/24"}}]}],` + both + `}`,
		},
		// Ports without ranges would be these ports of everything.
		"ports without ranges": {
			Rules{Ports: []Ports{{"TCP", 443, 443}}}, `{"podSelector":{},"ingress":[{"from":[` + within + `]}],"egress":[{"to":[` + within + `]},` + dnsTo + `],` + both + `}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := json.Marshal(Policy("kubeop-acme-shop", nil, tc.rules).Spec)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestASettingNamesANamespaceOrItsLabels(t *testing.T) {
	for setting, want := range map[string]struct {
		labels []map[string]string
		fails  bool
	}{
		"":                    {},
		" ":                   {},
		"ingress-nginx":       {labels: []map[string]string{{nameLabel: "ingress-nginx"}}},
		"use=monitoring":      {labels: []map[string]string{{"use": "monitoring"}}},
		"a.example/b=c, d=e":  {labels: []map[string]string{{"a.example/b": "c", "d": "e"}}},
		"use!=tenants":        {fails: true},
		"use=":                {labels: []map[string]string{{"use": ""}}},
		"two words":           {fails: true},
		"=a":                  {fails: true},
		"use=monitoring=true": {fails: true},
	} {
		got, err := Namespaces(setting)
		if diff := cmp.Diff(want.labels, got); diff != "" || (err != nil) != want.fails {
			t.Errorf("%q: %v (-want +got):\n%s", setting, err, diff)
		}
	}
}
