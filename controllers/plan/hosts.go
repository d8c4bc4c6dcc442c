package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/delivery/guardrails"
	"github.com/kubeop/kubeop/delivery/hostname"
	"github.com/kubeop/kubeop/delivery/policy"
	"github.com/kubeop/kubeop/gitops/identity"
)

// Host is a host name that an object of an App serves.
type Host struct {
	// Object as "<kind>/<name>", and Written is the host name as it has it. Name is its one form.
	Object, Written, Name string
}

// HostsOf returns the host names of objects. Those that there cannot be are left out: an App with one is refused.
func HostsOf(objects []*unstructured.Unstructured) (all []Host) {
	for _, object := range objects {
		for _, written := range guardrails.Hosts(object) {
			if name, err := hostname.Normalize(written); err == nil && written != "" {
				all = append(all, Host{policy.NameOf(object), written, name})
			}
		}
	}
	return all
}

// Hosts are the host names that the Apps of one commit have. A host name belongs to one project, so that of two Apps of different projects that a commit
// gives the same one, only one gets it. The claims in the cluster are not known here, so wildcards are not compared with the names below them: whether they
// may be of different tenants depends on the claims.
type Hosts map[string]identity.Ref

// mostHosts is how many host names of an App an error of Add names.
const mostHosts = 20

// Add adds the host names of an App. The error has those that an App which was added before has in another project, as violations of package policy.
func (h Hosts) Add(app identity.Ref, hosts []Host) error {
	var refused []error
	more := 0
	for _, host := range hosts {
		by, there := h[host.Name]
		switch {
		case !there:
			h[host.Name] = app
		case by.Parent() == app.Parent():
		case len(refused) == mostHosts:
			more++
		default:
			refused = append(refused, taken(host.Object, fmt.Sprintf("has the host %s, which app %s has in the same commit", host.Written, by.Path())))
		}
	}
	if more > 0 {
		refused = append(refused, taken("the app", fmt.Sprintf("has %d more host names that other apps have in the same commit", more)))
	}
	return errors.Join(refused...)
}

func taken(object, why string) error {
	return &policy.Violation{Object: object, Rule: guardrails.Hostnames, Why: why, Remedies: []policy.Remedy{
		{About: "host names", Text: "a host name belongs to one project: remove it there, or choose another one, in Git"},
	}}
}

// shareHosts refuses the deliveries whose host names others have. Apps that are there already come first: mostly, they have the claims.
func shareHosts(all []*delivery) {
	inTurn := slices.Clone(all)
	slices.SortStableFunc(inTurn, func(a, b *delivery) int { return cmp.Compare(len(b.app.UID), len(a.app.UID)) }) // A new App has no UID.
	hosts := Hosts{}
	for _, d := range inTurn {
		if d.err == nil {
			ref, _ := identity.Of(d.app)
			d.err = hosts.Add(ref, HostsOf(d.made.Declared()))
		}
	}
}
