package project

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func list(amounts map[string]string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for name, amount := range amounts {
		l[corev1.ResourceName(name)] = resource.MustParse(amount)
	}
	return l
}

func TestQuotaOf(t *testing.T) {
	cases := map[string]struct {
		asked, allowed, want map[string]string
		excess               []string
	}{
		"nothing asked":                {want: map[string]string{"pods": "50", "services.nodeports": "0", "requests.cpu": "4"}},
		"less asked":                   {asked: map[string]string{"pods": "5"}, want: map[string]string{"pods": "5", "requests.cpu": "4"}},
		"more asked than the default":  {asked: map[string]string{"pods": "51"}, excess: []string{"pods 51, of which 50 is allowed", "Tenant"}},
		"more allowed, not asked":      {allowed: map[string]string{"pods": "500"}, want: map[string]string{"pods": "50"}},
		"more allowed and asked":       {asked: map[string]string{"pods": "100"}, allowed: map[string]string{"pods": "500"}, want: map[string]string{"pods": "100"}},
		"less allowed than by default": {allowed: map[string]string{"pods": "10"}, want: map[string]string{"pods": "10"}},
		"something else":               {asked: map[string]string{"requests.example.com/gpu": "1"}, excess: []string{"requests.example.com/gpu 1, of which nothing is allowed"}},
		"something else, allowed":      {asked: map[string]string{"count/jobs.batch": "1"}, allowed: map[string]string{"count/jobs.batch": "2"}, want: map[string]string{"count/jobs.batch": "1"}},
		"two in excess":                {asked: map[string]string{"pods": "1k", "services.nodeports": "1"}, excess: []string{"pods 1k", "services.nodeports 1"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := quotaOf(list(c.asked), list(c.allowed))
			if (err != nil) != (len(c.excess) > 0) {
				t.Fatalf("got %v", err)
			}
			for _, want := range c.excess {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the message does not say %q: %v", want, err)
				}
			}
			for name, want := range c.want {
				amount := got[corev1.ResourceName(name)]
				if amount.Cmp(resource.MustParse(want)) != 0 {
					t.Errorf("%s is %s, want %s", name, amount.String(), want)
				}
			}
		})
	}
}
