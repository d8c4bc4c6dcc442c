#!/bin/sh
exec cache-cli -a "$PASSWORD" ping
