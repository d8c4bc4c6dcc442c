package signing

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// Errors of Sign and Verify.
var (
	ErrNoKey   = errors.New("there is no key that signs")
	ErrInvalid = errors.New("the JWT is invalid")
	// ErrExpired is returned only for a JWT that was valid.
	ErrExpired = errors.New("the JWT expired")
)

// Claims are the claims of a JWT.
type Claims struct {
	jwt.Claims
	// Name says what the JWT is for.
	Name string `json:"name"`
	// Scope is the one scope of the JWT.
	Scope string `json:"scope"`
}

// Sign returns a JWT with these claims. It sets the issuer and, if there is none, the audience.
func (k *Keys) Sign(c Claims) (string, error) {
	signing := k.current()
	if signing == nil {
		return "", ErrNoKey
	}
	c.Issuer = k.Issuer
	if len(c.Audience) == 0 {
		c.Audience = jwt.Audience{k.Issuer}
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: jose.JSONWebKey{Key: signing.private, KeyID: signing.id}}, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return "", fmt.Errorf("signing a JWT: %w", err)
	}
	return jwt.Signed(signer).Claims(c).Serialize()
}

// Verify verifies a JWT that was made for the manager, and returns its claims.
func (k *Keys) Verify(text string) (Claims, error) {
	parsed, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil || len(parsed.Headers) != 1 {
		return Claims{}, ErrInvalid
	}
	for _, one := range k.valid() {
		if one.id != parsed.Headers[0].KeyID {
			continue
		}
		var c Claims
		if err := parsed.Claims(one.private.Public(), &c); err != nil {
			return Claims{}, ErrInvalid
		}
		return c, k.check(c)
	}
	return Claims{}, ErrInvalid
}

func (k *Keys) check(c Claims) error {
	if c.Expiry == nil || c.IssuedAt == nil || c.Expiry.Time().Sub(c.IssuedAt.Time()) > MaxLife {
		return ErrInvalid
	}
	// The expiry needs no leeway: the manager itself set it.
	if err := c.ValidateWithLeeway(jwt.Expected{Issuer: k.Issuer, AnyAudience: jwt.Audience{k.Issuer}, Time: k.Now()}, leeway); err != nil && !errors.Is(err, jwt.ErrExpired) {
		return ErrInvalid
	}
	if !k.Now().Before(c.Expiry.Time()) {
		return ErrExpired
	}
	return nil
}

// TimeOf converts a time to the form of a JWT.
func TimeOf(at time.Time) *jwt.NumericDate { return jwt.NewNumericDate(at) }
