package network

import (
	"errors"
	"net/netip"
	"testing"
)

func TestChooseFindsARangeThatNothingUses(t *testing.T) {
	accept := func(netip.Addr) bool { return true }
	tests := map[string]struct {
		used  []string
		claim func(netip.Addr) bool
		want  string
		err   error
	}{
		"a host with nothing of the kind": {used: []string{"192.168.1.0/24"}, want: "10.128.0.0/18"},
		"a default route is no overlap":   {used: []string{"0.0.0.0/0"}, want: "10.128.0.0/18"},
		"a small network inside a block":  {used: []string{"10.128.77.0/24"}, want: "10.129.0.0/18"},
		"a private network routed whole":  {used: []string{"10.0.0.0/8"}, want: "172.20.0.0/18"},
		"only the benchmarking range left": {
			used: []string{"10.0.0.0/8", "172.16.0.0/12"}, want: "198.18.0.0/18",
		},
		"nothing left": {used: []string{"10.0.0.0/8", "172.16.0.0/12", "198.18.0.0/15"}, err: ErrNoBlock},
		"a block another cluster has claimed": {
			claim: func(block netip.Addr) bool { return block.String() != "10.128.0.0" }, want: "10.129.0.0/18",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var used []netip.Prefix
			for _, prefix := range test.used {
				used = append(used, netip.MustParsePrefix(prefix))
			}
			if test.claim == nil {
				test.claim = accept
			}
			plan, err := Choose(used, test.claim)
			if !errors.Is(err, test.err) {
				t.Fatalf("error %v, want %v", err, test.err)
			}
			if err == nil && plan.Pods.String() != test.want {
				t.Errorf("pods %s, want %s", plan.Pods, test.want)
			}
		})
	}
}

func TestPlansAreDisjoint(t *testing.T) {
	plan := Default()
	link := netip.PrefixFrom(plan.Host, plan.LinkBits)
	if plan.Pods.Overlaps(plan.Services) || plan.Pods.Overlaps(link) || plan.Services.Overlaps(link) {
		t.Errorf("pods %s, services %s and link %s overlap", plan.Pods, plan.Services, link)
	}
	if !link.Contains(plan.Node) || !plan.Services.Contains(plan.DNS()) || !plan.Services.Contains(plan.API()) {
		t.Errorf("node %s, DNS %s or API %s is outside its range", plan.Node, plan.DNS(), plan.API())
	}
}
