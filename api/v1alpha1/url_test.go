package v1alpha1

import "testing"

func TestTheURLIsThatOfTheFirstHost(t *testing.T) {
	tls := &LocalSecretReference{Name: "cert"}
	for want, hosts := range map[string][]AppHost{
		"":                                nil,
		"shop.example.com":                {{Host: "shop.example.com", Path: "/"}, {Host: "other.example.com"}},
		"shop.example.com/api":            {{Host: "shop.example.com", Path: "/api"}},
		"https://shop.example.com":        {{Host: "shop.example.com", TLSSecretRef: tls}},
		"https://shop.example.com/api/v1": {{Host: "shop.example.com", Path: "/api/v1", TLSSecretRef: tls}},
	} {
		if got := (&AppSpec{Hosts: hosts}).URL(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
