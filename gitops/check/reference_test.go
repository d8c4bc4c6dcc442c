package check

import (
	"strings"
	"testing"
)

func TestAnInvalidImageReferenceIsExplained(t *testing.T) {
	const (
		format    = "is not an image reference, such as registry.example/team/web:v1"
		lowercase = "is not an image reference: the name must be lowercase"
	)
	hex := strings.Repeat("0123456789abcdef", 4)
	tests := map[string]struct{ reference, want string }{
		"name":                         {"web", ""},
		"tag":                          {"web:v1.2_3-RC", ""},
		"number for a tag":             {"web:5000", ""},
		"path":                         {"team/sub/web__x--y.z_1", ""},
		"registry":                     {"registry.example/web", ""},
		"registry with port":           {"localhost:5000/web:v1", ""},
		"registry by address":          {"[2001:db8::1]:5000/web", ""},
		"uppercase registry":           {"REGISTRY.example/web", ""},
		"digest":                       {"web@sha256:" + hex, ""},
		"tag and digest":               {"registry.example/team/web:v1@sha256:" + hex, ""},
		"longest name":                 {"registry.example/" + strings.Repeat("a", 255), ""},
		"longest name, local":          {"localhost/" + strings.Repeat("a", 255), ""},
		"longest name, host in caps":   {"REGISTRY/" + strings.Repeat("a", 255), ""},
		"longest tag":                  {"web:" + strings.Repeat("a", 128), ""},
		"uppercase name, two tags":     {"HELLO/World:1:2", format},
		"uppercase name":               {"registry.example/Web:v1", lowercase},
		"uppercase name, no registry":  {"Web", lowercase},
		"two tags":                     {"web:1:2", format},
		"no tag":                       {"web:", format},
		"tag that begins with a dash":  {"web:-1", format},
		"long tag":                     {"web:" + strings.Repeat("a", 129), format},
		"scheme":                       {"https://registry.example/web", format},
		"slash at the end":             {"registry.example/web/", format},
		"slash at the start":           {"/web", format},
		"two slashes":                  {"team//web", format},
		"dash at the end":              {"web-", format},
		"three underscores":            {"web___x", format},
		"short digest":                 {"web@sha256:" + hex[:63], format},
		"unknown digest":               {"web@md5:" + hex[:32], format},
		"a digest that reads as a tag": {"sha256:" + hex, ""},
		"variable":                     {"registry.example/web:$TAG", format},
		"template":                     {"registry.example/web:{{tag}}", format},
		"ID":                           {hex, "is the ID of an image; write its name, such as registry.example/team/web:v1"},
		"long name, no registry":       {strings.Repeat("a", 100) + "/" + strings.Repeat("b", 155), "is not an image reference: the name is too long"},
		"long name, one part":          {strings.Repeat("a", 248), "is not an image reference: the name is too long"},
		"long name":                    {"registry.example/" + strings.Repeat("a", 256), "is not an image reference: the name is too long"},
		"nothing":                      {"", format},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := wrongImage(tc.reference); got != tc.want {
				t.Errorf("%q: got %q, want %q", tc.reference, got, tc.want)
			}
		})
	}
}
