// Package oidc finds out which person an ID token is of, for any issuers with OpenID Connect. People and groups have the names that the API server gives them if it is set up with the same
// claims and prefixes.
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
	// ErrUnavailable is returned if it cannot be found out, because the issuer does not answer.
	ErrUnavailable = errors.New("the issuer does not answer")
)

// leeway is by how much the clock of an issuer may differ.
const leeway = 30 * time.Second

// algorithms are those with a public key. One with a shared secret would take the public key for it, and "none" anything.
var algorithms = []jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA}

// Settings are those of an issuer. The claims and prefixes mean what they do for the API server.
type Settings struct {
	URL string
	// Audience is the client ID for which tokens have to be made.
	Audience                      string
	UsernameClaim, UsernamePrefix string
	// GroupsClaim is "" for no groups.
	GroupsClaim, GroupsPrefix string
	// CAFile has the certificates that issued that of the issuer, "" for those of the system.
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

// Issuers are those whose tokens are taken, by their URLs.
type Issuers struct {
	all map[string]*issuer
	now func() time.Time
}

type issuer struct {
	Settings
	keys *keys
}

// New returns the issuers of settings. They are asked when Run runs, or a token is verified.
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

// URLs returns those of all issuers, sorted.
func (i *Issuers) URLs() []string {
	if i == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(i.all))
}

// Has reports whether tokens of an issuer are taken.
func (i *Issuers) Has(url string) bool { return i != nil && i.all[url] != nil }

// Check returns why an issuer did not answer when it was asked last.
func (i *Issuers) Check(url string) error { return i.all[url].keys.check() }

// Verify returns who a token of an issuer is of.
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

// ambiguous reports whether a claim that was checked is there in another case too: encoding/json takes any case, and the last one counts.
func ambiguous(claims map[string]json.RawMessage) bool {
	for name := range claims {
		lower := strings.ToLower(name)
		if name != lower && slices.Contains([]string{"iss", "aud", "exp", "nbf", "iat"}, lower) {
			return true
		}
	}
	return false
}

// maxName is as long as the name of an owner may be.
const maxName = 253

// identity reads the claims of a token whose signature is valid.
func (i *issuer) identity(claims map[string]json.RawMessage) (Identity, error) {
	name, is := text(claims[i.UsernameClaim])
	verified := string(claims["email_verified"])
	// As the API server does: an address that somebody only claims is nobody's name.
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

// proper reports whether a name may be that of a person or a group. Those that begin with system: are Kubernetes' own.
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

// texts reads one text, or a list of them. Without any there are none.
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
