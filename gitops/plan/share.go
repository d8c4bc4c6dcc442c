package plan

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeop/kubeop/delivery/quota"
)

// Share is what the quota of one project has of the resources of a budget.
type Share struct {
	Project string
	// Has is what the project has in the cluster; nil if it is not there. Wants is what it has after the commit; nil if the commit leaves its
	// quota as it is.
	Has, Wants corev1.ResourceList
	// Requested is the quota that the project requests in the commit. Of other resources, Wants has the defaults.
	Requested corev1.ResourceList
	// Excess is what the commit requests beyond the maximum of a policy. The project keeps what it has; nil for nothing.
	Excess *quota.Excess
	// Preview: the project is a preview of a branch, which gets what other projects leave.
	Preview bool
	// Leaving: the project is being deleted. It has its share until it is gone.
	Leaving bool
}

// after is the share after the commit.
func (s *Share) after() corev1.ResourceList {
	if s.Wants != nil && s.Excess == nil {
		return s.Wants
	}
	return s.Has
}

// grown returns the resources of which the project wants more than it has, sorted.
func (s *Share) grown(of corev1.ResourceList) (names []corev1.ResourceName) {
	for name, wants := range s.Wants {
		if has := s.Has[name]; wants.Cmp(has) > 0 && in(of, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// shrinks reports whether the project has more of a resource than it wants.
func (s *Share) shrinks(of corev1.ResourceList) bool {
	for name, has := range s.Has {
		if wants := s.Wants[name]; has.Cmp(wants) > 0 && in(of, name) {
			return true
		}
	}
	return false
}

// inOrder sorts by name, previews last.
func (s *Share) inOrder(o *Share) int {
	if s.Preview != o.Preview {
		if s.Preview {
			return 1
		}
		return -1
	}
	return strings.Compare(s.Project, o.Project)
}

// tally is a sum of shares.
type tally map[corev1.ResourceName]resource.Quantity

func (t tally) add(share corev1.ResourceList, times int) {
	for name, amount := range share {
		sum := t[name]
		if times < 0 {
			sum.Sub(amount)
		} else {
			sum.Add(amount)
		}
		t[name] = sum
	}
}

// with returns the sum of a resource if a project has what it wants.
func (t tally) with(name corev1.ResourceName, s *Share) resource.Quantity {
	sum := t[name].DeepCopy()
	sum.Sub(s.Has[name])
	sum.Add(s.Wants[name])
	return sum
}

func in(list corev1.ResourceList, name corev1.ResourceName) bool {
	_, there := list[name]
	return there
}
