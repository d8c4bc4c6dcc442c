package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
)

// OIDC is how people sign in to the management API. Each issuer is set up as it is for the API server, so that people have the same names there.
type OIDC struct {
	Issuers []Issuer `json:"issuers"`
	// Admins are the administrators of the platform, by their names with the prefix.
	Admins struct {
		Users  []string `json:"users"`
		Groups []string `json:"groups"`
	} `json:"admins"`
}

// Issuer makes ID tokens.
type Issuer struct {
	URL string `json:"url"`
	// Audience is the client ID for which tokens have to be made.
	Audience string `json:"audience"`
	// UsernameClaim is the claim with the name of a person, by default sub. GroupsClaim is that with the groups, "" for none. The prefixes are put before the names.
	UsernameClaim  string `json:"usernameClaim"`
	UsernamePrefix string `json:"usernamePrefix"`
	GroupsClaim    string `json:"groupsClaim"`
	GroupsPrefix   string `json:"groupsPrefix"`
	// CAFile has the certificates that issued that of the issuer, "" for those of the system.
	CAFile string `json:"caFile"`
}

// EnvDecode reads JSON.
func (o *OIDC) EnvDecode(text string) error {
	if text == "" {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(o); err != nil {
		return fmt.Errorf("it may be JSON such as {\"issuers\": [{\"url\": \"https://accounts.example.com\", \"audience\": \"kubeop\"}]}: %w", err)
	}
	for i := range o.Issuers {
		if o.Issuers[i].UsernameClaim == "" {
			o.Issuers[i].UsernameClaim = "sub"
		}
	}
	return nil
}

func (o *OIDC) check(own string) error {
	for i, issuer := range o.Issuers {
		u, err := url.Parse(issuer.URL)
		switch {
		case err != nil || u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil:
			return fmt.Errorf("OIDC has the issuer %q; it must be an https URL without a query, as the issuer itself writes it", issuer.URL)
		case issuer.URL == own:
			return fmt.Errorf("OIDC has the issuer %s, which is PUBLIC_URL: the manager itself issues JWTs with this name", issuer.URL)
		case issuer.Audience == "":
			return fmt.Errorf("OIDC has the issuer %s without an audience, the client ID for which its tokens have to be made", issuer.URL)
		}
		for _, other := range o.Issuers[:i] {
			if err := apart(issuer, other); err != nil {
				return err
			}
		}
	}
	for _, name := range append(append([]string{}, o.Admins.Users...), o.Admins.Groups...) {
		if name == "" || strings.HasPrefix(name, "system:") {
			return fmt.Errorf("OIDC has the administrator %q; names that begin with system: are Kubernetes' own", name)
		}
	}
	return nil
}

// apart returns an error if a person of one issuer may have the name of one of the other.
func apart(a, b Issuer) error {
	same := func(x, y string) bool { return strings.HasPrefix(x, y) || strings.HasPrefix(y, x) }
	switch {
	case a.URL == b.URL:
		return fmt.Errorf("OIDC has the issuer %s twice", a.URL)
	case same(a.UsernamePrefix, b.UsernamePrefix):
		return fmt.Errorf("OIDC has the issuers %s and %s with the usernamePrefix %q and %q; none may be the beginning of the other, or a person of one could have the name of one of the other", b.URL, a.URL, b.UsernamePrefix, a.UsernamePrefix)
	case a.GroupsClaim != "" && b.GroupsClaim != "" && same(a.GroupsPrefix, b.GroupsPrefix):
		return fmt.Errorf("OIDC has the issuers %s and %s with the groupsPrefix %q and %q; none may be the beginning of the other, or a group of one could have the name of one of the other", b.URL, a.URL, b.GroupsPrefix, a.GroupsPrefix)
	}
	return nil
}
