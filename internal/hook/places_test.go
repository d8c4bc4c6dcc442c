package hook

import (
	"net"
	"slices"
	"testing"
)

// TestTheOldestConnectionIsClosedFirst: above the limit of a key, its oldest place is taken away; above the total limit, the oldest of all.
func TestTheOldestConnectionIsClosedFirst(t *testing.T) {
	p := newPlaces[string](2, 5)
	var gone []string
	leaves := map[string]func(){}
	take := func(key, name string) {
		t.Helper()
		at, leave := p.take(key, func() { gone = append(gone, name) })
		if leaves[name] = leave; at.gaveWay() {
			t.Errorf("%s gave way before it was taken", name)
		}
	}
	expect := func(what string, want ...string) {
		t.Helper()
		if !slices.Equal(gone, want) {
			t.Errorf("%s: %v gave way, want %v", what, gone, want)
		}
		gone = nil
	}
	take("a", "a1")
	take("a", "a2")
	take("b", "b1")
	expect("below the limits")
	take("a", "a3")
	expect("a has two already", "a1")
	leaves["a1"]() // The work of a place that was taken away also calls leave.
	take("c", "c1")
	take("d", "d1")
	expect("five in all")
	take("e", "e1")
	expect("above the total limit", "a2")
	leaves["c1"]()
	leaves["c1"]()
	take("f", "f1")
	expect("c left, once")
	for _, leave := range leaves {
		leave()
	}
	if p.taken.Len() != 0 || len(p.of) != 0 {
		t.Errorf("when all have left, %d places and %v are taken", p.taken.Len(), p.of)
	}
}

func TestAddressesCountByNetwork(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.7:443": "192.0.2.7/32", "[::ffff:192.0.2.7]:1": "192.0.2.7/32",
		"[2001:db8:1:2:3::4]:1": "2001:db8:1:2::/64", "[2001:db8:1:2:ffff::]:2": "2001:db8:1:2::/64", "[fe80::1%eth0]:2": "fe80::/64",
	} {
		at, err := net.ResolveTCPAddr("tcp", remote)
		if err != nil {
			t.Fatal(err)
		}
		if got := networkOf(at).String(); got != want {
			t.Errorf("%s counts as %s, want %s", remote, got, want)
		}
	}
}
