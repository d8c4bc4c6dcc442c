package clusternet

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestOnlyTheNetworksOfANodeAreKept, and nothing of its images and conditions.
func TestOnlyTheNetworksOfANodeAreKept(t *testing.T) {
	spec := corev1.NodeSpec{PodCIDR: "10.244.0.0/24", PodCIDRs: []string{"10.244.0.0/24", "fd00::/64"}}
	addresses := []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.1.5"}}
	whole := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u", ResourceVersion: "7", Labels: map[string]string{"a": "b"}},
		Spec:       corev1.NodeSpec{PodCIDR: spec.PodCIDR, PodCIDRs: spec.PodCIDRs, Unschedulable: true},
		Status:     corev1.NodeStatus{Addresses: addresses, Images: []corev1.ContainerImage{{SizeBytes: 1}}},
	}
	want := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u", ResourceVersion: "7"}, Spec: spec, Status: corev1.NodeStatus{Addresses: addresses},
	}
	got, err := slimNode(whole)
	if diff := cmp.Diff(any(want), got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	other := &corev1.Service{}
	if got, err := slimNode(other); got != other || err != nil {
		t.Errorf("another object becomes %v, %v", got, err)
	}
}

func TestAnUpdateOfANodeWithTheSameNetworksChangesNothing(t *testing.T) {
	one := func(change func(*corev1.Node)) *corev1.Node {
		n := node([]string{"10.244.0.0/24"}, "10.0.1.5")
		n.ResourceVersion = "1"
		change(&n)
		return &n
	}
	same := func(*corev1.Node) {}
	for name, tc := range map[string]struct {
		was, is any
		want    bool
	}{
		"the same":          {one(same), one(func(n *corev1.Node) { n.ResourceVersion = "2" }), true},
		"another address":   {one(same), one(func(n *corev1.Node) { n.Status.Addresses[0].Address = "10.0.1.6" }), false},
		"another range":     {one(same), one(func(n *corev1.Node) { n.Spec.PodCIDRs[0] = "10.244.1.0/24" }), false},
		"no Nodes":          {&networkingv1.ServiceCIDR{}, &networkingv1.ServiceCIDR{}, false},
		"no Node afterward": {one(same), &networkingv1.ServiceCIDR{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := sameNode(tc.was, tc.is); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// watched lists what a test puts into it.
type watched struct {
	cache.Cache
	nodes []corev1.Node
	err   map[string]error
	lists int
}

func (w *watched) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	w.lists++
	switch l := list.(type) {
	case *corev1.NodeList:
		l.Items = w.nodes
		return w.err["Node"]
	case *discoveryv1.EndpointSliceList:
		return w.err["EndpointSlice"]
	}
	return w.err["ServiceCIDR"]
}

// TestNoAddressIsSafeWhileTheNetworksAreUnknown. An API server without ServiceCIDRs is no failure.
func TestNoAddressIsSafeWhileTheNetworksAreUnknown(t *testing.T) {
	broken := errors.New("the watch is broken")
	for name, tc := range map[string]struct {
		err  map[string]error
		want error
	}{
		"all are listed":   {nil, nil},
		"no Nodes":         {map[string]error{"Node": broken}, broken},
		"no API servers":   {map[string]error{"EndpointSlice": broken}, broken},
		"no Services":      {map[string]error{"ServiceCIDR": broken}, broken},
		"no such kind":     {map[string]error{"ServiceCIDR": &meta.NoKindMatchError{}}, nil},
		"no such resource": {map[string]error{"ServiceCIDR": &meta.NoResourceMatchError{}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			n := &Networks{Cache: &watched{nodes: []corev1.Node{node(nil, "203.0.113.7")}, err: tc.err}}
			what, err := n.What(t.Context(), netip.MustParseAddr("203.0.113.7"))
			if !errors.Is(err, tc.want) || (err == nil) != (what == ofNode) {
				t.Errorf("it is %q, %v", what, err)
			}
			except, all, err := n.Except(t.Context(), netip.MustParsePrefix("203.0.113.7/32"))
			if !errors.Is(err, tc.want) || except != nil || all != (err == nil) {
				t.Errorf("of it is left out %v, all: %v, %v", except, all, err)
			}
			if tc.want != nil && !strings.HasPrefix(err.Error(), "looking up the cluster's networks: ") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestUsersAreNotifiedOfAChange once, and only if they used what changed.
func TestUsersAreNotifiedOfAChange(t *testing.T) {
	at := &watched{nodes: []corev1.Node{node(nil, "203.0.113.7")}, err: map[string]error{}}
	n, notified := &Networks{Cache: at}, 0
	for range 2 {
		n.OnChange(func() { notified++ })
	}
	want := func(what string, times int) {
		t.Helper()
		if notified != times {
			t.Errorf("%s: notified %d times, want %d", what, notified, times)
		}
		notified = 0
	}
	n.outdated()
	want("nobody used them", 0)
	if _, err := n.What(t.Context(), netip.MustParseAddr("203.0.113.8")); err != nil {
		t.Fatal(err)
	}
	n.outdated()
	want("nothing changed", 0)
	at.nodes = append(at.nodes, node(nil, "203.0.113.8"))
	n.updated(&at.nodes[0], at.nodes[0].DeepCopy())
	want("a node is updated without a change", 0)
	n.updated(&at.nodes[0], &at.nodes[1])
	want("a node joined", 2)
	if what, err := n.What(t.Context(), netip.MustParseAddr("203.0.113.8")); what != ofNode || err != nil {
		t.Errorf("the new node is %q, %v", what, err)
	}
	at.err["Node"] = errors.New("the watch is broken")
	n.outdated()
	want("it is unknown what changed", 2)
	delete(at.err, "Node")
	_, _ = n.What(t.Context(), netip.MustParseAddr("203.0.113.8"))
	lists := at.lists
	for range 3 {
		_, _ = n.What(t.Context(), netip.MustParseAddr("203.0.113.8"))
	}
	if at.lists != lists {
		t.Errorf("the networks are computed again for each address: %d lists", at.lists-lists)
	}
}

func TestAddressesInOtherFormsAreThoseOfTheCluster(t *testing.T) {
	o := newOwn(Options{})
	first := corev1.Node{Spec: corev1.NodeSpec{PodCIDR: "10.244.3.7/24"}} // An old API server sets only this field.
	o.learn([]corev1.Node{first, node([]string{"", "none"}, "::ffff:10.0.1.5", "fe80::1%eth0", "node-1", "")}, nil, nil)
	for address, want := range map[string]string{"10.244.3.200": ofPod, "10.0.1.5": ofNode, "fe80::1": ofNode, "10.244.4.1": "", "fe80::2": ""} {
		if got := o.what(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s is %q, want %q", address, got, want)
		}
	}
	if len(o.networks) != 3 {
		t.Errorf("known are %v", o.networks)
	}
}

// TestTheSmallestNetworkDescribesAnAddress, and a range is without the ranges inside another.
func TestTheSmallestNetworkDescribesAnAddress(t *testing.T) {
	o := newOwn(Options{Named: prefixes("10.0.0.0/8")})
	o.learn([]corev1.Node{node([]string{"10.1.0.0/16"}, "10.1.2.3")}, nil, []networkingv1.ServiceCIDR{{Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.1.2.0/24"}}}})
	for address, want := range map[string]string{"10.1.2.3": ofNode, "10.1.2.4": ofService, "10.1.3.4": ofPod, "10.2.3.4": ofCluster} {
		if got := o.what(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s is %q, want %q", address, got, want)
		}
	}
	if except, all := o.except(netip.MustParsePrefix("0.0.0.0/0")); all || !slices.Equal(except, prefixes("10.0.0.0/8")) {
		t.Errorf("%v are left out, all: %v", except, all)
	}
	if except, all := o.except(netip.MustParsePrefix("10.0.0.0/8")); !all || except != nil {
		t.Errorf("of a named network %v are left out, all: %v", except, all)
	}
}
