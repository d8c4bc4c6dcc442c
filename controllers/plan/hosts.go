package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

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
// gives the same one, only one gets it. The claims in the cluster are not known here.
type Hosts map[string]identity.Ref

// Add adds the host names of an App. The error has those that an App which was added before has in another project, as violations of package policy.
func (h Hosts) Add(app identity.Ref, hosts []Host) error {
	var refused []error
	for _, host := range hosts {
		by := h.taken(app, host.Name)
		if by == (identity.Ref{}) {
			h[host.Name] = app
			continue
		}
		refused = append(refused, &policy.Violation{
			Object: host.Object, Rule: guardrails.Hostnames, Why: fmt.Sprintf("has the host %s, which app %s has in the same commit", host.Written, by.Path()),
			Remedies: []policy.Remedy{{About: "host names", Text: "a host name belongs to one project: remove it there, or choose another one, in Git"}},
		})
	}
	return errors.Join(refused...)
}

// taken returns the App of another project that has a host name; the zero Ref for none. Between tenants, a wildcard has all names below it.
func (h Hosts) taken(app identity.Ref, name string) identity.Ref {
	if by, there := h[name]; there {
		if by.Parent() == app.Parent() {
			return identity.Ref{}
		}
		return by
	}
	var overlapping []identity.Ref
	note := func(by identity.Ref) {
		if by.Tenant != "" && by.Tenant != app.Tenant {
			overlapping = append(overlapping, by)
		}
	}
	for _, wildcard := range hostname.Wildcards(name) {
		note(h[wildcard])
	}
	if strings.HasPrefix(name, "*.") {
		for other, by := range h {
			if hostname.Covers(name, other) {
				note(by)
			}
		}
	}
	if len(overlapping) == 0 {
		return identity.Ref{}
	}
	return slices.MinFunc(overlapping, func(a, b identity.Ref) int { return strings.Compare(a.Path(), b.Path()) })
}

// shareHosts refuses the deliveries whose host names others have. Apps that are there already come first: mostly, they have the claims.
func shareHosts(all []*delivery) {
	inTurn := slices.Clone(all)
	slices.SortStableFunc(inTurn, func(a, b *delivery) int { return cmp.Compare(len(b.app.UID), len(a.app.UID)) }) // A new App has no UID.
	hosts := Hosts{}
	for _, d := range inTurn {
		if d.err == nil {
			ref, _ := identity.Of(d.app)
			d.err = hosts.Add(ref, HostsOf(d.objects()))
		}
	}
}
