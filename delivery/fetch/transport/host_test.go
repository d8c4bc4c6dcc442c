package transport

import "testing"

func TestHostOfAddsThePortOfTheScheme(t *testing.T) {
	for url, want := range map[string]string{
		"https://Git.example/a": "git.example:443", "http://git.example:8080/a": "git.example:8080", "ssh://git@git.example/a": "git.example:22",
		"oci://registry.example/charts": "registry.example:443", "http://git.example": "git.example:80", "nonsense": "", "": "",
	} {
		if got := HostOf(url); got != want {
			t.Errorf("%s: got %q, want %q", url, got, want)
		}
	}
}
