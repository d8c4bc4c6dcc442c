package problem

import "net/http"

// Code is the stable code of a problem. It keeps its meaning when texts change.
type Code string

// The codes. docs/errors.md says what to do about each.
const (
	BadRequest      Code = "bad-request"
	Unauthenticated Code = "unauthenticated"
	Forbidden       Code = "forbidden"
	NotFound        Code = "not-found"
	NoSuchMethod    Code = "method-not-allowed"
	TooSlow         Code = "request-timeout"
	Conflict        Code = "conflict"
	TooLarge        Code = "body-too-large"
	UnsupportedType Code = "unsupported-media-type"
	Invalid         Code = "invalid"
	TooManyRequests Code = "rate-limited"
	Internal        Code = "internal"
	Unavailable     Code = "unavailable"
	TookTooLong     Code = "deadline-exceeded"
)

type meaning struct {
	status int
	title  string
}

var codes = map[Code]meaning{
	BadRequest:      {http.StatusBadRequest, "The request cannot be read."},
	Unauthenticated: {http.StatusUnauthorized, "The request has no valid token."},
	Forbidden:       {http.StatusForbidden, "The caller may not do this."},
	NotFound:        {http.StatusNotFound, "There is no such resource, or the caller may not see it."},
	NoSuchMethod:    {http.StatusMethodNotAllowed, "The resource has no such method."},
	TooSlow:         {http.StatusRequestTimeout, "The request was not there in time."},
	Conflict:        {http.StatusConflict, "The state of the resource does not allow this."},
	TooLarge:        {http.StatusRequestEntityTooLarge, "The body is too large."},
	UnsupportedType: {http.StatusUnsupportedMediaType, "The body is not of a media type that the operation takes."},
	Invalid:         {http.StatusUnprocessableEntity, "A part of the request is invalid."},
	TooManyRequests: {http.StatusTooManyRequests, "The caller sent too many requests."},
	Internal:        {http.StatusInternalServerError, "The manager failed. Its log has the reason, with the id of the request."},
	Unavailable:     {http.StatusServiceUnavailable, "What the operation needs is not there now."},
	TookTooLong:     {http.StatusGatewayTimeout, "The operation took too long."},
}

// byStatus has the code for each status with which huma itself refuses a request.
var byStatus = func() map[int]Code {
	all := map[int]Code{}
	for code, about := range codes {
		all[about.status] = code
	}
	return all
}()

// Statuses returns the error statuses of an operation: those of every operation with a token, and further ones.
func Statuses(further ...int) []int {
	return append(further, http.StatusUnauthorized, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusGatewayTimeout)
}

// Codes returns every code with its status.
func Codes() map[Code]int {
	all := map[Code]int{}
	for code, about := range codes {
		all[code] = about.status
	}
	return all
}
