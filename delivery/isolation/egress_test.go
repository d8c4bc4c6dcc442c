package isolation

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// rule reads a rule such as "10.0.0.0/8,fd00::/8 at 443/TCP,1000-2000/UDP".
func rule(t *testing.T, text string) v1alpha1.EgressRules {
	t.Helper()
	ranges, ports, limited := strings.Cut(text, " at ")
	one := v1alpha1.EgressRules{CIDRs: strings.Split(ranges, ",")}
	if !limited {
		return one
	}
	for _, p := range strings.Split(ports, ",") {
		numbers, protocol, _ := strings.Cut(p, "/")
		port := v1alpha1.EgressPort{Protocol: protocol}
		if first, last, ok := strings.Cut(numbers, "-"); ok {
			numbers = first
			if _, err := fmt.Sscan(last, &port.EndPort); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := fmt.Sscan(numbers, &port.Port); err != nil {
			t.Fatal(err)
		}
		one.Ports = append(one.Ports, port)
	}
	return one
}

func (r Reach) text() string {
	var ranges, ports []string
	for _, within := range r.Ranges {
		ranges = append(ranges, within.String())
	}
	for _, p := range r.Ports {
		ports = append(ports, fmt.Sprintf("%d-%d/%s", p.First, p.Last, p.Protocol))
	}
	return strings.TrimSuffix(strings.Join(ranges, ",")+" at "+strings.Join(ports, ","), " at ")
}

// TestTheStrictestRuleWins: an address and a port have to be in every rule.
func TestTheStrictestRuleWins(t *testing.T) {
	for name, c := range map[string]struct {
		rules []string
		want  string
	}{
		"no rule":                          {nil, ""},
		"one rule":                         {[]string{"203.0.113.0/24,2001:db8::/32"}, "203.0.113.0/24,2001:db8::/32"},
		"bits of hosts":                    {[]string{"203.0.113.9/24"}, "203.0.113.0/24"},
		"twice, and inside of another one": {[]string{"10.1.0.0/16,10.0.0.0/8,10.0.0.0/8"}, "10.1.0.0/16,10.0.0.0/8"},
		"a small range of a large one":     {[]string{"0.0.0.0/0,10.1.2.0/24", "0.0.0.0/0"}, "0.0.0.0/0,10.1.2.0/24"},
		"nothing in common":                {[]string{"10.0.0.0/8", "192.168.0.0/16"}, ""},
		"neighbours":                       {[]string{"10.0.0.0/9", "10.128.0.0/9"}, ""},
		"one inside of the other":          {[]string{"10.0.0.0/8", "10.1.0.0/16"}, "10.1.0.0/16"},
		"the other inside of the one":      {[]string{"10.1.0.0/16", "10.0.0.0/8"}, "10.1.0.0/16"},
		"the same":                         {[]string{"10.1.0.0/16", "10.1.0.0/16"}, "10.1.0.0/16"},
		"everything":                       {[]string{"0.0.0.0/0,::/0", "10.1.2.3/32,fd00::1/128"}, "10.1.2.3/32,fd00::1/128"},
		"families are apart":               {[]string{"0.0.0.0/0", "::/0"}, ""},
		"one family of two":                {[]string{"0.0.0.0/0,::/0", "::/0"}, "::/0"},
		"several parts": {[]string{"10.0.0.0/8,192.168.0.0/16", "10.1.0.0/16,10.2.0.0/16,192.0.0.0/8", "0.0.0.0/0"},
			"10.1.0.0/16,10.2.0.0/16,192.168.0.0/16"},
		"three that have nothing in common, but each two do": {[]string{"10.1.0.0/16,10.2.0.0/16", "10.2.0.0/16,10.3.0.0/16", "10.1.0.0/16,10.3.0.0/16"}, ""},
		"ports of one rule":               {[]string{"10.0.0.0/8", "10.0.0.0/8 at 443"}, "10.0.0.0/8 at 443-443/TCP"},
		"ports of the first rule":         {[]string{"10.0.0.0/8 at 443", "10.0.0.0/8"}, "10.0.0.0/8 at 443-443/TCP"},
		"ranges of ports":                 {[]string{"10.0.0.0/8 at 1000-2000,53/UDP", "10.0.0.0/8 at 1500-3000,53/UDP,53/TCP"}, "10.0.0.0/8 at 1500-2000/TCP,53-53/UDP"},
		"ports twice, and inside of more": {[]string{"10.0.0.0/8 at 443,443/TCP,400-500"}, "10.0.0.0/8 at 400-500/TCP"},
		"no port in common":               {[]string{"10.0.0.0/8 at 443", "10.0.0.0/8 at 80"}, ""},
		"no protocol in common":           {[]string{"10.0.0.0/8 at 443", "10.0.0.0/8 at 443/UDP"}, ""},
		"no port in common, and then all": {[]string{"10.0.0.0/8 at 443", "10.0.0.0/8 at 80", "10.0.0.0/8"}, ""},
		"an end that is the port":         {[]string{"10.0.0.0/8 at 443-443"}, "10.0.0.0/8 at 443-443/TCP"},
	} {
		t.Run(name, func(t *testing.T) {
			var rules []v1alpha1.EgressRules
			for _, text := range c.rules {
				rules = append(rules, rule(t, text))
			}
			got, err := Strictest(rules...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got.text()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	for _, text := range []string{"", "10.0.0.0", "10.0.0.0/33", "everywhere"} {
		if _, err := Strictest(v1alpha1.EgressRules{CIDRs: []string{text}}); err == nil {
			t.Errorf("%q is a range", text)
		}
	}
}
