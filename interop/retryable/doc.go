// Package retryable runs go-retryablehttp's own tests with weir in the place of its
// loop: a copy of the library whose Client.Do sends by retry.FromClient.
package retryable
