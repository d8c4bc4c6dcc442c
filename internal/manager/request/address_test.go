package request

import (
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

func TestTheClientIsTheLastAddressThatIsNoProxys(t *testing.T) {
	proxies := Proxies{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:1::/48")}
	for name, c := range map[string]struct {
		from      string
		forwarded []string
		want      string
	}{
		"a direct client":                      {"192.0.2.1:1234", nil, "192.0.2.1"},
		"a direct client that invents":         {"192.0.2.1:1234", []string{"198.51.100.1"}, "192.0.2.1"},
		"a client of a proxy":                  {"10.0.0.1:1", []string{"192.0.2.1"}, "192.0.2.1"},
		"a client of a proxy that invents":     {"10.0.0.1:1", []string{"198.51.100.1, 192.0.2.1"}, "192.0.2.1"},
		"it invents a proxy":                   {"10.0.0.1:1", []string{"198.51.100.1, 10.0.0.9, 192.0.2.1"}, "192.0.2.1"},
		"it invents a header of its own":       {"10.0.0.1:1", []string{"198.51.100.1", "192.0.2.1"}, "192.0.2.1"},
		"two proxies":                          {"10.0.0.1:1", []string{"198.51.100.1", "192.0.2.1,10.0.0.2"}, "192.0.2.1"},
		"a proxy that asks by itself":          {"10.0.0.1:1", nil, "10.0.0.1"},
		"only proxies":                         {"10.0.0.1:1", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		"with ports":                           {"10.0.0.1:1", []string{"[2001:db8:2::1]:80, [2001:db8:1::1]:443"}, "2001:db8:2::1"},
		"in brackets":                          {"10.0.0.1:1", []string{"[2001:db8:2::1]"}, "2001:db8:2::1"},
		"a zone":                               {"10.0.0.1:1", []string{"fe80::1%eth0"}, "fe80::1"},
		"IPv4 in IPv6":                         {"[::ffff:10.0.0.1]:1", []string{"192.0.2.1, ::ffff:10.0.0.2"}, "192.0.2.1"},
		"garbage":                              {"10.0.0.1:1", []string{"192.0.2.1, unknown"}, "10.0.0.1"},
		"garbage behind a proxy":               {"10.0.0.1:1", []string{`192.0.2.1, "><script>, 10.0.0.2`}, "10.0.0.2"},
		"nothing between commas":               {"10.0.0.1:1", []string{"192.0.2.1,,", ""}, "10.0.0.1"},
		"so many that it would cost something": {"10.0.0.1:1", []string{strings.Repeat("198.51.100.1,", 1000) + "192.0.2.1"}, "192.0.2.1"},
		"no address":                           {"@", []string{"192.0.2.1"}, "@"},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/", nil)
			r.RemoteAddr = c.from
			r.Header["X-Forwarded-For"] = c.forwarded
			if got := proxies.Client(r); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// FuzzClient: whatever a client sends by a proxy, it is the address that the proxy appended.
func FuzzClient(f *testing.F) {
	f.Add("198.51.100.1, 10.0.0.9")
	f.Add("[::1]:80,\x00,%")
	f.Fuzz(func(t *testing.T, theirs string) {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = "10.0.0.1:1"
		r.Header["X-Forwarded-For"] = []string{theirs, theirs + ", 192.0.2.1"}
		if got := (Proxies{netip.MustParsePrefix("10.0.0.0/8")}).Client(r); got != "192.0.2.1" {
			t.Errorf("%q: %s", theirs, got)
		}
	})
}
