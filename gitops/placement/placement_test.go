package placement

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var two = Rules{Clusters: []string{"east", "west"}, Default: "west"}

func TestNothingIsTakenWhileItIsNotKnownWhatIsWhere(t *testing.T) {
	name := func(s string) *string { return &s }
	for what, c := range map[string]struct {
		rules  Rules
		own    *string
		unread bool
		want   string
	}{
		"no clusters and no name":        {own: name("")},
		"a declared name":                {rules: two, own: name("east")},
		"only checking":                  {rules: two},
		"only checking without clusters": {},
		"clusters and no name":           {rules: two, own: name(""), want: "has no name, so it does not know which projects it has; ask an administrator of the cluster to set clusterName of its chart to one of: east, west"},
		"a name without a file":          {rules: two, own: name("north"), want: `has the name "north", and there is no clusters/north.yaml`},
		"a name and no clusters":         {own: name("west"), want: `has the name "west", and there is no clusters/west.yaml`},
		"no default":                     {rules: Rules{Clusters: two.Clusters}, own: name("east"), want: "spec.default: no cluster is the default one"},
		"only checking, no default":      {rules: Rules{Clusters: two.Clusters}, want: "such as clusters/east.yaml"},
		"a folder that cannot be read":   {own: name(""), unread: true, want: "the folder cannot be read"},
	} {
		err := c.rules.Undecided(c.own, c.unread)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
	}
}

func TestATenantMayUseTheClustersItNamesElseTheDefaultOnly(t *testing.T) {
	for name, c := range map[string]struct {
		rules Rules
		named []string
		want  []string
	}{
		"it names some":       {two, []string{"east"}, []string{"east"}},
		"it names none":       {two, nil, []string{"west"}},
		"there are none":      {Rules{}, nil, nil},
		"there is no default": {Rules{Clusters: two.Clusters}, nil, nil},
	} {
		if diff := cmp.Diff(c.want, c.rules.Allowed(c.named)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

func TestAProjectIsOnTheClusterItNamesElseOnTheFirstOfItsTenant(t *testing.T) {
	for name, c := range map[string]struct {
		rules          Rules
		project        Project
		allowed        []string
		administrators bool
		want           string
		unknown        bool
		why            string
	}{
		"it names one":                {rules: two, project: Project{Tenant: "acme", Cluster: "west"}, allowed: []string{"east", "west"}, want: "west"},
		"it names none":               {rules: two, project: Project{Tenant: "acme"}, allowed: []string{"east", "west"}, want: "east"},
		"there are no clusters":       {project: Project{Tenant: "acme"}},
		"one that it may not use":     {rules: two, project: Project{Tenant: "acme", Cluster: "east"}, allowed: []string{"west"}, administrators: true, why: `spec.cluster: "east" is none of the clusters that tenant acme may use (west); name one of these, or ask`},
		"one that is not there":       {rules: two, project: Project{Tenant: "acme", Cluster: "north"}, allowed: []string{"west"}, administrators: true, unknown: true, why: `there is no cluster "north"; add clusters/north.yaml, or remove the name`},
		"a tenant learns only its":    {rules: two, project: Project{Tenant: "acme", Cluster: "north"}, allowed: []string{"west"}, why: `spec.cluster: "north" is none of the clusters that tenant acme may use (west); name one of these, or ask`},
		"one where there are none":    {project: Project{Tenant: "acme", Cluster: "west"}, why: `may use (none)`},
		"the platform on each":        {rules: two, project: Project{Tenant: "platform", Platform: true}},
		"the platform on one":         {rules: two, project: Project{Tenant: "platform", Platform: true, Cluster: "east"}, want: "east"},
		"the platform on none of all": {rules: two, project: Project{Tenant: "platform", Platform: true, Cluster: "north"}, unknown: true, why: `there is no cluster "north"`},
	} {
		on, refused := c.rules.Place(c.project, c.allowed, c.administrators)
		switch {
		case on != c.want || (refused != nil) != (c.why != ""):
			t.Errorf("%s: on %q, %v, want %q", name, on, refused, c.want)
		case refused != nil && (refused.Unknown != c.unknown || !strings.Contains(refused.Why, c.why)):
			t.Errorf("%s: %+v, want %q", name, refused, c.why)
		}
	}
}
