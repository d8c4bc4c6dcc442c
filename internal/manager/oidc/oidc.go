// Package oidc verifies ID tokens of any issuer of OpenID Connect, and returns the person of a token. A person and their groups have the same names as
// in the API server, if both are configured with the same claims and prefixes.
package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// Errors of Verify.
var (
	ErrInvalid = errors.New("the ID token is invalid")
	// ErrExpired is returned only for a token that was valid.
	ErrExpired = errors.New("the ID token expired")
	// ErrUnavailable is returned if the token cannot be verified, because the issuer does not answer.
	ErrUnavailable = errors.New("the issuer does not answer")
)

// leeway is how far the clock of an issuer may be off.
const leeway = 30 * time.Second

// algorithms are those with a public key. An algorithm with a shared secret would use the public key as the secret, and "none" would accept anything.
var algorithms = []jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA}

// Settings are the settings of an issuer. The claims and prefixes mean the same as in the API server.
type Settings struct {
	URL string
	// Audience is the client ID that tokens must be made for.
	Audience                      string
	UsernameClaim, UsernamePrefix string
	// GroupsClaim is the claim with the groups, "" for no groups.
	GroupsClaim, GroupsPrefix string
	// CAFile has the certificates of the authority that issued the certificate of the issuer, "" for the authorities of the system.
	CAFile string
}

// Identity is a person.
type Identity struct {
	User   string
	Groups []string
	// Email is "" unless the issuer says that it is verified.
	Email           string
	Issued, Expires time.Time
}

// Issuers has the issuers whose tokens are accepted, by URL.
type Issuers struct {
	all map[string]*issuer
	now func() time.Time
}

type issuer struct {
	Settings
	keys *keys
}

// New returns the issuers of some settings. Their keys are fetched when Run runs, or when a token is verified.
func New(all []Settings, now func() time.Time) (*Issuers, error) {
	i := &Issuers{all: map[string]*issuer{}, now: now}
	for _, s := range all {
		client, err := newClient(s.CAFile)
		if err != nil {
			return nil, fmt.Errorf("the issuer %s: %w", s.URL, err)
		}
		i.all[s.URL] = &issuer{s, &keys{url: s.URL, client: client, now: now}}
	}
	return i, nil
}

// URLs returns the URLs of all issuers, sorted.
func (i *Issuers) URLs() []string {
	if i == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(i.all))
}

// Has reports whether tokens of an issuer are accepted.
func (i *Issuers) Has(url string) bool { return i != nil && i.all[url] != nil }

// Check returns why the last fetch from an issuer failed.
func (i *Issuers) Check(url string) error { return i.all[url].keys.check() }

// Verify verifies a token of an issuer, and returns its person.
func (i *Issuers) Verify(ctx context.Context, url, text string) (Identity, error) {
	from := i.all[url]
	var names []string
	for _, a := range algorithms {
		names = append(names, string(a))
	}
	// The times are checked below, with a leeway for each.
	with := &attempt{keys: from.keys}
	token, err := oidc.NewVerifier(url, with, &oidc.Config{ClientID: from.Audience, SupportedSigningAlgs: names, SkipExpiryCheck: true}).Verify(ctx, text)
	switch {
	case with.why != nil:
		return Identity{}, with.why
	case err != nil:
		return Identity{}, ErrInvalid
	}
	claims, times := map[string]json.RawMessage{}, jwt.Claims{}
	if token.Claims(&claims) != nil || token.Claims(&times) != nil || ambiguous(claims) || times.Expiry == nil {
		return Identity{}, ErrInvalid
	}
	identity, err := from.identity(claims)
	if err != nil {
		return Identity{}, err
	}
	identity.Expires, identity.Issued = times.Expiry.Time().UTC(), token.IssuedAt.UTC()
	switch err := times.ValidateWithLeeway(jwt.Expected{Time: i.now()}, leeway); {
	case errors.Is(err, jwt.ErrExpired):
		return Identity{}, ErrExpired
	case err != nil:
		return Identity{}, ErrInvalid
	}
	return identity, nil
}

// ambiguous reports whether the token has a checked claim a second time in other case: encoding/json ignores case, and uses the last one.
func ambiguous(claims map[string]json.RawMessage) bool {
	for name := range claims {
		lower := strings.ToLower(name)
		if name != lower && slices.Contains([]string{"iss", "aud", "exp", "nbf", "iat"}, lower) {
			return true
		}
	}
	return false
}

// maxName is the maximum length of the name of an owner.
const maxName = 253

// identity reads the claims of a token whose signature is valid.
func (i *issuer) identity(claims map[string]json.RawMessage) (Identity, error) {
	name, is := text(claims[i.UsernameClaim])
	verified := string(claims["email_verified"])
	// The API server decides the same: an address that is not verified is no name.
	if !is || i.UsernameClaim == "email" && verified != "" && verified != "true" {
		return Identity{}, ErrInvalid
	}
	who := Identity{User: i.UsernamePrefix + name}
	if !proper(who.User) {
		return Identity{}, ErrInvalid
	}
	if email, is := text(claims["email"]); is && verified == "true" && proper(email) {
		who.Email = email
	}
	if i.GroupsClaim == "" { // A claim may have an empty name.
		return who, nil
	}
	groups, is := texts(claims[i.GroupsClaim])
	if !is {
		return Identity{}, ErrInvalid
	}
	for _, group := range groups {
		if group = i.GroupsPrefix + group; proper(group) {
			who.Groups = append(who.Groups, group)
		}
	}
	return who, nil
}

// proper reports whether a name may belong to a person or a group. Names with the prefix system: belong to Kubernetes.
func proper(name string) bool {
	return len(name) <= maxName && !strings.HasPrefix(name, "system:") && !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}

func text(raw json.RawMessage) (string, bool) {
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return "", false
	}
	s, is := value.(string)
	return s, is && s != ""
}

// texts parses one text or a list of texts; an absent value is an empty list.
func texts(raw json.RawMessage) ([]string, bool) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, true
	}
	if one, is := text(raw); is {
		return []string{one}, true
	}
	var all []string
	return all, json.Unmarshal(raw, &all) == nil
}
