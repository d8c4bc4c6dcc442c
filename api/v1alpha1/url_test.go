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
	if got := (&AppSpec{Host: "web.example.com"}).URL(); got != "web.example.com" {
		t.Errorf("of the field host got %q", got)
	}
	for annotation, want := range map[string]string{"cert-manager.io/issuer": "https://shop.example.com", "example.com/issuer": "shop.example.com"} {
		for _, spec := range []*AppSpec{{Hosts: []AppHost{{Host: "shop.example.com", Path: "/"}}}, {Host: "shop.example.com"}} {
			spec.Ingress = &AppIngress{Annotations: map[string]string{annotation: "le"}}
			if got := spec.URL(); got != want {
				t.Errorf("with the annotation %s got %q, want %q", annotation, got, want)
			}
		}
	}
}
